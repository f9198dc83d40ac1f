package main

import (
	"bytes"
	"strings"
	"testing"

	"quorate.dev/render"
)

// TestManifests holds the command line to package render: each flag arrives.
func TestManifests(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   render.InstallOptions
	}{
		"Namespaces": {
			reason: "Commas separate the namespaces",
			args:   []string{"--namespace=ops", "--image=registry.example/quorate:v1", "--watch-namespace=a,b"},
			want:   render.InstallOptions{Namespace: "ops", Image: "registry.example/quorate:v1", WatchNamespaces: []string{"a", "b"}},
		},
		"Monitoring": {
			reason: "What the Prometheus operator needs is there where it was asked for",
			args:   []string{"--monitoring"},
			want:   render.InstallOptions{Monitoring: true},
		},
		"Only": {
			reason: "A part is printed by itself, as the other flags make it",
			args:   []string{"--only=operator", "--namespace=ops"},
			want:   render.InstallOptions{Only: render.PartOperator, Namespace: "ops"},
		},
		"WithoutSecrets": {
			reason: "The rights on Secrets are left out where that was asked for",
			args:   []string{"--without-secrets"},
			want:   render.InstallOptions{WithoutSecrets: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := render.Install(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if got := execute(t, append([]string{"manifests"}, tc.args...)...); got != string(want) {
				t.Errorf("%s: the manifests differ from what render gives for the same options:\n%s", tc.reason, got)
			}
		})
	}
}

// TestManifestsRefuses: a part that there is not is an error, and nothing is printed that could be
// applied, or deleted, in its place.
func TestManifestsRefuses(t *testing.T) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"manifests", "--only=all"})
	err := cmd.ExecuteContext(t.Context())
	if err == nil || err.Error() != `--only "all": want one of crds, namespace, operator` || out.Len() > 0 {
		t.Errorf("want an error that says what there is, and no output; got %v and %d bytes", err, out.Len())
	}
}

// TestAlerts: the rule file is that of package render, whose rules templates/alerts_test.go
// evaluates.
func TestAlerts(t *testing.T) {
	want, err := render.Alerts()
	if err != nil {
		t.Fatal(err)
	}
	if got := execute(t, "alerts"); got != string(want) {
		t.Errorf("the alerts differ from those that render gives:\n%s", got)
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
