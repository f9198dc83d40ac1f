package reconcile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// testdata/previous has, for each release, clusters as it has left them in an API server: objects
// with their managedFields and their status. Each release adds its own (make record RELEASE=name).
// testdata/previous/<release>.yaml says for every place in which Pods are rendered otherwise today,
// why.

// Previous is one of these clusters.
type Previous struct {
	Cluster *api.EtcdCluster
	Objects []client.Object // all others
}

// PreviousClusters are the files of all, by release and name.
func PreviousClusters(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/previous/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cluster of an earlier release: %v", err)
	}
	all := map[string]string{}
	for _, file := range files {
		all[filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return all
}

// ReadPrevious reads a cluster, with other words in the place of some: old and new in turn. They
// are replaced in JSON, where a string has its quotes: YAML takes an ID such as 1234567890123456 or
// 1e15 for a number.
func ReadPrevious(t *testing.T, file string, oldnew ...string) Previous {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(previousScheme(t)).UniversalDeserializer()
	var p Previous
	replacer := strings.NewReplacer(oldnew...)
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		object, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		o, _, err := decoder.Decode([]byte(replacer.Replace(string(object))), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := o.(type) {
		case *api.EtcdCluster:
			p.Cluster = o
		case client.Object:
			p.Objects = append(p.Objects, o)
		}
	}
	return p
}

func previousScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// reader is an API server that has these objects.
func (p Previous) reader(t *testing.T) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(previousScheme(t)).WithReturnManagedFields().WithObjects(p.Cluster).WithObjects(p.Objects...).Build()
}

// TestReadPrevious: the IDs of this cluster come in the place of the recorded ones, whatever YAML
// would take them for.
func TestReadPrevious(t *testing.T) {
	t.Parallel()
	file := PreviousClusters(t)["65ec61d/formed"]
	was := ReadPrevious(t, file)
	old := was.Cluster.Status.ClusterID
	if old == "" {
		t.Fatalf("%s has no cluster ID", file)
	}
	cases := map[string]struct{ reason, id string }{
		"Letters":     {reason: "as nearly all of them are", id: "8e9e05c52164694d"},
		"Digits":      {reason: "an integer in YAML", id: "1234567890123456"},
		"Exponent":    {reason: "a float in YAML", id: "123456789012e145"},
		"Short":       {reason: "a small float in YAML", id: "1e15"},
		"Octal":       {reason: "an integer to the base of eight in YAML 1.1", id: "0123456701234567"},
		"Hexadecimal": {reason: "an integer to the base of sixteen in YAML", id: "0x12"},
		"Underscore":  {reason: "an integer in YAML 1.1", id: "12_3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := ReadPrevious(t, file, old, tc.id)
			if diff := cmp.Diff(tc.id, is.Cluster.Status.ClusterID); diff != "" {
				t.Errorf("%s: cluster ID of the status: -want +got:\n%s", tc.reason, diff)
			}
			for n, o := range is.Objects {
				marks, now := was.Objects[n].GetAnnotations(), o.GetAnnotations()
				for key, value := range marks {
					if diff := cmp.Diff(strings.ReplaceAll(value, old, tc.id), now[key]); diff != "" {
						t.Errorf("%s: %s of %s: -want +got:\n%s", tc.reason, key, o.GetName(), diff)
					}
				}
			}
		})
	}
}

// TestPreviousStays: no Pod of an earlier release is changed by this one.
func TestPreviousStays(t *testing.T) {
	t.Parallel()
	for name, file := range PreviousClusters(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ReadPrevious(t, file)
			o, err := Preview(t.Context(), p.reader(t), p.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			if o.Step != nil {
				t.Errorf("it would not be left at rest: %s %s: %s", o.Step.Action, o.Step.Reason, o.Step.Message)
			}
			for _, change := range o.Objects {
				if change.Effect != EffectApplied {
					t.Errorf("%s %s would be %s: %v", change.Kind, change.Name, change.Effect, change.Parts)
				}
			}
		})
	}
}

// TestRenderedOtherwise: what is rendered otherwise than by an earlier release has a reason. The
// Pods that run stay as they are for it, and a reader of the reason knows with which Pods every
// later change has to reckon.
func TestRenderedOtherwise(t *testing.T) {
	t.Parallel()
	otherwise := map[string]map[string]bool{}
	for name, file := range PreviousClusters(t) {
		release, _, _ := strings.Cut(name, "/")
		if otherwise[release] == nil {
			otherwise[release] = map[string]bool{}
		}
		p := ReadPrevious(t, file)
		for _, line := range p.otherwise(t.Context(), t) {
			otherwise[release][line] = true
		}
	}
	for release, lines := range otherwise {
		file := filepath.Join("testdata/previous", release+".yaml")
		raw, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing may need a reason yet
			t.Fatal(err)
		}
		reasons := map[string]string{}
		if err := yaml.UnmarshalStrict(raw, &reasons); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var missing bytes.Buffer
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			if reasons[line] == "" {
				missing.WriteString("'" + strings.ReplaceAll(line, "'", "''") + "':\n")
			}
			delete(reasons, line)
		}
		if missing.Len() > 0 {
			t.Errorf("Pods are rendered otherwise than by %s: write into %s why\n%s", release, file, &missing)
		}
		for line := range reasons {
			t.Errorf("%s gives a reason for what is rendered as it was: %s", file, line)
		}
	}
}

// otherwise are the places in which Pods are rendered otherwise today.
func (p Previous) otherwise(ctx context.Context, t *testing.T) []string {
	t.Helper()
	seen, err := look(ctx, p.reader(t), p.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for name, pod := range seen.pods {
		now, err := render.Pod(p.Cluster, member(p.Cluster, seen, name))
		if err != nil {
			t.Fatal(err)
		}
		differences, err := render.Differences(pod, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range differences {
			lines = append(lines, d.String())
		}
	}
	return lines
}
