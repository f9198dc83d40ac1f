package main

import (
	"bytes"
	"strings"
	"testing"

	"quorate.dev/render"
)

// TestManifests holds the command line to package render: each flag arrives.
func TestManifests(t *testing.T) {
	want, err := render.Install(render.InstallOptions{
		Namespace: "ops", Image: "registry.example/quorate:v1", WatchNamespaces: []string{"a", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t, "manifests", "--namespace=ops", "--image=registry.example/quorate:v1", "--watch-namespace=a,b")
	if got != string(want) {
		t.Errorf("the manifests differ from what render gives for the same options:\n%s", got)
	}
}

func TestVersion(t *testing.T) {
	if got := execute(t, "version"); !strings.HasPrefix(got, "quorate ") || strings.Count(got, "\n") != 1 {
		t.Errorf("want one line that starts with the name, got %q", got)
	}
}

func execute(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
