package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var (
	anyNamespace = regexp.MustCompile(`\bnamespace: (\S+)`)
	recordedName = regexp.MustCompile(`\bdb\b`)
)

// previous are the objects of a cluster as an earlier release has left them, in another namespace
// and under another name.
func previous(t *testing.T, file, namespace, name string) []client.Object {
	t.Helper()
	raw, err := os.ReadFile("../../reconcile/testdata/previous/" + file)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), anyNamespace.FindStringSubmatch(string(raw))[1], namespace)
	text = recordedName.ReplaceAllString(text, name)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var objects []client.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		o, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object, ok := o.(client.Object)
		if !ok {
			t.Fatalf("%s has a %T", file, o)
		}
		objects = append(objects, object)
	}
	return objects
}

// TestUpgradesDocumented: the example of docs/upgrades.md is what is told of clusters of earlier
// releases.
func TestUpgradesDocumented(t *testing.T) {
	t.Parallel()
	const command = "$ quorate preview -A\n"
	doc, err := os.ReadFile("../../docs/upgrades.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), command)
	example, _, _ = strings.Cut(example, "```")
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithObjects(previous(t, "aaf2907/formed.yaml", "team-a", "example")...).
		WithObjects(previous(t, "79fe817/formed.yaml", "team-b", "orders")...).Build()
	var out bytes.Buffer
	if err := (&previewOptions{all: true, output: "table"}).run(t.Context(), server, nil, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.String(), example); diff != "" {
		t.Errorf("what %sprints, -want +documented:\n%s", command, diff)
	}
}
