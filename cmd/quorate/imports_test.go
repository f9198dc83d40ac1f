package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// importRules say what the production files of a directory, and of those below it, may not import.
// They keep the deciding packages free of the world: what cannot import a client cannot call one. A
// directory may always import its own tree.
var importRules = map[string]struct {
	reason string
	banned []string
}{
	"api": {
		reason: "the API is what others build on: it builds on none of them",
		banned: []string{"quorate.dev", "sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes", "go.etcd.io"},
	},
	"crd": {
		reason: "crd judges by the manifests alone, so that the tests of every other package can ask it",
		banned: []string{
			"quorate.dev/api", "quorate.dev/cmd", "quorate.dev/e2e", "quorate.dev/membership", "quorate.dev/reconcile", "quorate.dev/render",
			"quorate.dev/snapshot", "sigs.k8s.io/controller-runtime", "k8s.io/client-go", "go.etcd.io",
		},
	},
	"render": {
		reason: "rendering is pure: it makes no calls and decides nothing about members; what the schema says is asked before",
		banned: []string{
			"context", "quorate.dev/crd", "quorate.dev/membership", "quorate.dev/reconcile", "sigs.k8s.io/controller-runtime",
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "k8s.io/client-go/dynamic", "go.etcd.io",
		},
	},
	"membership": {
		reason: "membership knows no Kubernetes, so that it can be run against any etcd and explored without a cluster",
		banned: []string{"quorate.dev", "k8s.io", "sigs.k8s.io"},
	},
	"snapshot": {
		reason: "the same code saves and restores any etcd, in a Job and by hand: it knows no Kubernetes",
		banned: []string{"quorate.dev", "k8s.io", "sigs.k8s.io"},
	},
	"templates": {
		reason: "templates are files, and embed.go",
		banned: []string{"quorate.dev", "k8s.io", "sigs.k8s.io", "go.etcd.io"},
	},
	"reconcile": {
		reason: "etcd is reached through membership, and nothing here is only for tests",
		banned: []string{"go.etcd.io", "quorate.dev/cmd", "quorate.dev/e2e", "quorate.dev/templates"},
	},
	"cmd": {
		reason: "nothing that ships is only for tests",
		banned: []string{"go.etcd.io", "quorate.dev/e2e"},
	},
	"module.go": {
		reason: "it has the go.mod of the module, and nothing else",
		banned: []string{"quorate.dev", "k8s.io", "sigs.k8s.io", "go.etcd.io"},
	},
	"docs": {
		reason: "docs reads documents for the tests of every other package",
		banned: []string{"quorate.dev", "k8s.io", "sigs.k8s.io", "go.etcd.io"},
	},
	"e2e": {
		reason: "the tests see the operator from outside: they may not call into it",
		banned: []string{"quorate.dev/reconcile", "quorate.dev/cmd"},
	},
}

func TestImports(t *testing.T) {
	const root = "../.."
	checked := map[string]int{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && file != root {
			return fs.SkipDir
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		rule, ok := importRules[top]
		if !ok {
			t.Errorf("%s: no import rule for %s: write one, or find the file a place under an existing one", rel, top)
			return nil
		}
		checked[top]++
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if within(imported, rule.banned...) && !within(imported, "quorate.dev/"+top) {
				t.Errorf("%s imports %s: %s", rel, imported, rule.reason)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for top := range importRules {
		if checked[top] == 0 {
			t.Errorf("the rule for %s met no file", top)
		}
	}
}

// within tells whether a package is one of those, or below one.
func within(pkg string, of ...string) bool {
	return slices.ContainsFunc(of, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}
