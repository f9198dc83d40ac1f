package v1alpha1

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"sigs.k8s.io/yaml"

	"quorate.dev/docs"
)

// minimalRestore is the smallest good EtcdRestore.
const minimalRestore = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}}
`

// TestDocumentedManifests: the API server takes every manifest that people are told to apply, in
// samples and in documents.
func TestDocumentedManifests(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Glob("../../templates/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	accepted := func(name, base, manifest string) {
		var is struct {
			APIVersion, Kind string
			Spec             any
		}
		if err := yaml.Unmarshal([]byte(manifest), &is); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if is.Kind == "" && is.Spec == nil { // no object, such as a configuration of Prometheus
			return
		}
		if base == "" || is.Kind != "" { // otherwise it is a part of an object
			base = manifest
		}
		if is.Kind != "" && is.APIVersion != SchemeGroupVersion.String() {
			return
		}
		found[is.Kind] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if errs := admit(t, base, args{object: manifest}); len(errs) > 0 {
				t.Errorf("refused: %s", strings.Join(errs, "; "))
			}
		})
	}
	for _, file := range samples {
		for n, document := range strings.Split(content(t, file), "\n---\n") {
			accepted(fmt.Sprintf("%s/%d", filepath.Base(file), n+1), "", document)
		}
	}
	for _, p := range documents(t) {
		of := minimal
		if p.Path == "docs/restore.md" {
			of = minimalRestore
		}
		for n, block := range p.Blocks {
			if block.Language == "yaml" {
				for m, document := range strings.Split(block.Text, "\n---\n") {
					accepted(fmt.Sprintf("%s/%d-%d", p.Path, n+1, m+1), of, document)
				}
			}
		}
	}
	for _, kind := range kindsOfOurs {
		if !found[kind] {
			t.Errorf("no document has a %s", kind)
		}
	}
}

// documents are all of the project.
func documents(t *testing.T) []docs.Page {
	t.Helper()
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestDocumentedPatches: the API server takes every patch that people are told to make.
func TestDocumentedPatches(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range documents(t) {
		for _, command := range p.Commands("kubectl") {
			m := patchCommand.FindStringSubmatch(command)
			if m == nil {
				continue
			}
			base, ours := map[string]string{"etcdcluster": minimal, "etcdc": minimal, "etcdbackup": minimalBackup, "etcdrestore": minimalRestore, "etcdrole": minimalRole, "etcduser": minimalUser}[m[1]]
			if !ours || strings.Contains(m[2], `"metadata"`) {
				continue
			}
			found++
			t.Run(fmt.Sprintf("%s/%d", p.Path, found), func(t *testing.T) {
				t.Parallel()
				if errs := admit(t, base, args{object: m[2]}); len(errs) > 0 {
					t.Errorf("%s: refused: %s", command, strings.Join(errs, "; "))
				}
			})
		}
	}
	if found < 3 {
		t.Errorf("found %d patches only", found)
	}
}

var patchCommand = regexp.MustCompile(`^kubectl .*\bpatch (\w+)[ /].*(?:-p[ =]?|--patch[ =])'([^']+)'`)

// TestDocumentedFields: each field that a document names in code is one of the schema of some kind.
func TestDocumentedFields(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, crd := range everyDefinition(t) {
		fields := func(path string, _ *apiextensions.JSONSchemaProps) { known[strings.ReplaceAll(path, "[]", "")] = true }
		schema := crd.Spec.Validation.OpenAPIV3Schema
		walk(schema, "", fields)
		for _, part := range []string{"spec", "status"} {
			for _, f := range fieldsOf(schema, part, "", nil) {
				known[strings.ReplaceAll(f.path, "[]", "")] = true
			}
		}
	}
	named := 0
	for _, p := range documents(t) {
		for _, code := range p.Code {
			for _, m := range fieldPath.FindAllStringSubmatch(code, -1) {
				named++
				if path := strings.ReplaceAll(m[1], "[]", ""); !known[path] {
					t.Errorf("%s: no kind has the field %s (in `%s`)", p.Path, path, code)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("found %d fields only", named)
	}
}

// fieldPath is one of a spec or status, in code of a line. What is part of a longer path, such as
// that of a Pod, is none.
var fieldPath = regexp.MustCompile(`(?:^|[ {(])\.?((?:spec|status)(?:\.[a-zA-Z0-9]+(?:\[\])?)+)`)

// TestDocumentedKinds: each kind of ours that a command of kubectl names is one, by a name that
// kubectl knows.
func TestDocumentedKinds(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, crd := range everyDefinition(t) {
		names := crd.Spec.Names
		for _, name := range append([]string{names.Singular, names.Plural}, names.ShortNames...) {
			known[name] = true
		}
	}
	named := 0
	for _, p := range documents(t) {
		for _, command := range p.Commands("kubectl") {
			for _, m := range kindNamed.FindAllStringSubmatch(command, -1) {
				named++
				if !known[m[1]] {
					t.Errorf("%s: %s: there is no kind %s", p.Path, command, m[1])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("found %d kinds only", named)
	}
}

// kindNamed is etcdcluster, etcdclusters, etcdc and so on, before a name or another kind.
var kindNamed = regexp.MustCompile(`(?:get|describe|delete|patch|wait|scale|explain|edit|annotate) (?:[a-z]+,)*(etcd[a-z]+)\b`)

func content(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
