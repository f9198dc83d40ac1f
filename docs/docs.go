// Package docs reads the project's documents, for the tests that hold them to the code. A document
// is an .md file; the tests of several packages ask for what it shows: links, YAML, commands,
// names.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is one document.
type Page struct {
	// Path of the file, from the root of the repository.
	Path string
	// Prose is the text without code: fenced blocks and code in a line are left out.
	Prose string
	// Headings are the texts of the headings, without markup.
	Headings []string
	// Code is what stands between backticks in a line.
	Code []string
	// Blocks are the fenced blocks.
	Blocks []Block
}

// Block is a fenced block.
type Block struct {
	Language string // the word after the fence, such as yaml
	Text     string
}

// Pages are all documents below root, the root of the repository.
func Pages(root string) ([]Page, error) {
	var pages []Page
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			hidden := strings.HasPrefix(name, ".") && name != ".github" && file != root
			if hidden || slices.Contains([]string{"bin", "testdata"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pages = append(pages, Parse(filepath.ToSlash(path), string(text)))
		return nil
	})
	return pages, err
}

var (
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	inline  = regexp.MustCompile("(?s)`([^`]+)`")
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// Parse a document.
func Parse(path, text string) Page {
	p := Page{Path: path}
	var prose strings.Builder
	var block *Block
	for line := range strings.Lines(text) {
		fence, fenced := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fenced && block == nil:
			block = &Block{Language: fence}
		case fenced:
			p.Blocks = append(p.Blocks, *block)
			block = nil
		case block != nil:
			block.Text += line
		default:
			if m := heading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				p.Headings = append(p.Headings, strings.ReplaceAll(link.ReplaceAllString(m[1], "$1"), "`", ""))
			}
			prose.WriteString(line)
		}
	}
	for _, m := range inline.FindAllStringSubmatch(prose.String(), -1) {
		p.Code = append(p.Code, strings.Join(strings.Fields(m[1]), " "))
	}
	p.Prose = inline.ReplaceAllString(prose.String(), "")
	return p
}

// Commands are the command lines that a page shows, in blocks and between backticks, without prompt
// and comment, lines that end with a backslash joined. Each begins with one of the programs.
func (p Page) Commands(programs ...string) []string {
	var all []string
	add := func(line string) {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		line = strings.Join(words, " ")
		line = strings.Replace(line, "go run ./cmd/quorate", "quorate", 1)
		for _, program := range programs {
			if line == program || strings.HasPrefix(line, program+" ") {
				all = append(all, line)
			}
		}
	}
	for _, b := range p.Blocks {
		if b.Language == "yaml" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.Text, "\\\n", "")) {
			add(line)
		}
	}
	for _, code := range p.Code {
		add(code)
	}
	return all
}
