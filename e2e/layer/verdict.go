package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var errNoTest = errors.New("no test ran")

// verdict on a run that the go command has passed: it must have run something, and for every
// package pattern and every name in a -run pattern at least one test.
func (j *judge) verdict(args []string) error {
	if j.count("pass")+j.count("fail") == 0 {
		return errNoTest
	}
	for _, pattern := range packages(args) {
		if !j.ran(func(id testID) bool { return belongsTo(id.Package, pattern) }) {
			return fmt.Errorf("%w in %s", errNoTest, pattern)
		}
	}
	for _, name := range asked(args) {
		matches, err := regexp.Compile(name)
		if err != nil {
			return fmt.Errorf("-run: %w", err)
		}
		named := func(id testID) bool {
			top, _, _ := strings.Cut(id.Test, "/")
			return matches.MatchString(top)
		}
		if !j.ran(named) {
			return fmt.Errorf("%w for -run %s", errNoTest, name)
		}
	}
	return nil
}

// ran reports whether a test of that kind ran.
func (j *judge) ran(kind func(testID) bool) bool {
	for id, r := range j.results {
		if r.leaf && (r.Action == "pass" || r.Action == "fail") && kind(id) {
			return true
		}
	}
	return false
}

// packages are the package patterns of a `go test`: all that begin with a dot.
func packages(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg != "." && !strings.HasPrefix(arg, "./") })
}

// belongsTo reports whether an import path is one of a pattern, which may end with /... for all
// below.
func belongsTo(importPath, pattern string) bool {
	dir := path.Clean("/" + strings.TrimSuffix(pattern, "..."))
	if strings.HasSuffix(pattern, "...") {
		return dir == "/" || strings.Contains(importPath+"/", dir+"/")
	}
	return dir == "/" || strings.HasSuffix(importPath, dir)
}

var alternatives = regexp.MustCompile(`^([^()|]*)\(([^()]+)\)([^()|]*)$`)

// asked are the top-level names in the -run flag: of ^Test(A|B)$ they are ^TestA$ and ^TestB$.
func asked(args []string) []string {
	for n, arg := range args {
		flag, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || flag != "run" {
			continue
		}
		if !assigned && n+1 < len(args) {
			value = args[n+1]
		}
		top, _, _ := strings.Cut(value, "/")
		parts := alternatives.FindStringSubmatch(top)
		if parts == nil {
			return strings.Split(top, "|")
		}
		var names []string
		for name := range strings.SplitSeq(parts[2], "|") {
			names = append(names, parts[1]+name+parts[3])
		}
		return names
	}
	return nil
}
