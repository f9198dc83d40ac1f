//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/node"
)

// A page of docs tells people which commands to type and what to apply. Its stories type them, with
// kubectl and a shell, as they stand there. A command that no story types fails the test.

// page is one of docs.
type page struct {
	*testing.T
	name, text string
	commands   []string

	mu    sync.Mutex
	typed map[string]bool
}

// newPage reads a page, of which the stories of the test are to type all commands but these.
func newPage(t *testing.T, name string, but ...string) *page {
	t.Helper()
	raw, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{T: t, name: name, text: string(raw), typed: map[string]bool{}}
	for _, kind := range []string{"text", "console"} {
		for _, block := range p.blocks(kind) {
			for line := range strings.Lines(block) {
				p.commands = append(p.commands, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
			}
		}
	}
	for _, line := range but {
		p.note(line)
	}
	t.Cleanup(func() { // when all stories have ended
		for _, line := range p.commands {
			if !p.typed[line] && !t.Failed() {
				t.Errorf("docs/%s tells people to type this, and no story does: %s", name, line)
			}
		}
	})
	return p
}

// blocks of a kind, in their order.
func (p *page) blocks(kind string) (all []string) {
	for _, after := range strings.Split(p.text, "\n```"+kind+"\n")[1:] {
		block, _, _ := strings.Cut(after, "\n```")
		all = append(all, block)
	}
	return all
}

// manifest is the one that has all these words.
func (p *page) manifest(words ...string) string {
	p.Helper()
	for _, block := range p.blocks("yaml") {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(block, word) }) {
			return block + "\n"
		}
	}
	p.Fatalf("docs/%s has no manifest with %q", p.name, words)
	return ""
}

// note that a command was typed, which must be one of the page.
func (p *page) note(line string) {
	p.Helper()
	if !slices.Contains(p.commands, line) {
		p.Errorf("docs/%s does not tell people to type this: %s", p.name, line)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typed[line] = true
}

// shell is where a person types the commands of a page, in a directory and a namespace of its own.
type shell struct {
	*stage
	page *page
	dir  string
	env  []string
	// stands is what something of the page is called here, such as its bucket.
	stands map[string]string
}

func (p *page) shell(s *stage, stands map[string]string) *shell {
	s.Helper()
	dir := s.TempDir()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		var err error
		assets, err = node.Assets(s.Context(), "")
		s.must(err)
	}
	program, err := quorate()
	s.must(err)
	config := clientcmdapi.NewConfig()
	config.Clusters["here"] = &clientcmdapi.Cluster{Server: apiServer.Host, CertificateAuthorityData: apiServer.CAData}
	config.AuthInfos["here"] = &clientcmdapi.AuthInfo{ClientCertificateData: apiServer.CertData, ClientKeyData: apiServer.KeyData}
	config.Contexts["here"] = &clientcmdapi.Context{Cluster: "here", AuthInfo: "here", Namespace: s.ns}
	config.CurrentContext = "here"
	file := filepath.Join(dir, "kubeconfig")
	s.must(clientcmd.WriteToFile(*config, file))
	path := strings.Join([]string{assets, filepath.Dir(program), os.Getenv("PATH")}, string(os.PathListSeparator))
	h := &shell{stage: s, page: p, dir: dir, env: append(os.Environ(), "KUBECONFIG="+file, "PATH="+path), stands: map[string]string{}}
	maps.Copy(h.stands, stands)
	return h
}

// types a command of the page, and returns what it prints.
func (h *shell) types(line string) string {
	h.Helper()
	h.page.note(line)
	out, err := h.command(line)
	if err != nil {
		h.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func (h *shell) command(line string) (string, error) {
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", h.here(line))
	cmd.Dir, cmd.Env = h.dir, h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// here has what stands for something of the page.
func (h *shell) here(text string) string {
	for _, word := range slices.Sorted(maps.Keys(h.stands)) {
		text = strings.ReplaceAll(text, word, h.stands[word])
	}
	return text
}

// writes a file as the page tells to.
func (h *shell) writes(file, content string) {
	h.Helper()
	h.must(os.WriteFile(filepath.Join(h.dir, file), []byte(h.here(content)), 0o600))
}

// applies a manifest of the page that has no command of its own there.
func (h *shell) applies(manifest string) {
	h.Helper()
	h.writes("manifest.yaml", manifest)
	if out, err := h.command("kubectl apply --server-side -f manifest.yaml"); err != nil {
		h.Fatalf("apply: %v\n%s\n%s", err, out, manifest)
	}
}

// prints fails unless what a command has printed has all these words.
func (h *shell) prints(out string, words ...string) {
	h.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			h.Errorf("%q is not in what was printed:\n%s", word, out)
		}
	}
}

// now is an object as it is now.
func (s *stage) now(o client.Object) {
	s.Helper()
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(o), o))
}

// onVolume is what the store of the pages is here, as a manifest has it.
var onVolume = map[string]string{
	"{s3: {bucket: etcd-backups, prefix: prod, region: eu-central-1}, serviceAccountName: backup}": fmt.Sprintf("{volume: {claimName: %s}}", backups),
}
