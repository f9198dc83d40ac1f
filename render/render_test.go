package render

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

// TestObjects renders every testdata/etcdcluster/<case>/cluster.yaml: the objects of the cluster
// and those of its first member. A cluster whose status has an ID has formed, and its members
// resume.
func TestObjects(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, name)
			golden(t, filepath.Join("etcdcluster", name, "objects.yaml"), render(t, c))
		})
	}
}

// TestFreshValues shows that two renderings are equal and share nothing: applying one overwrites it
// with the answer.
func TestFreshValues(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, name)
			before := c.DeepCopy()
			want := render(t, c)

			for _, object := range objects(t, c) {
				scribble(reflect.ValueOf(object))
			}
			if got := render(t, c); !bytes.Equal(want, got) {
				t.Errorf("a rendering changes with what was done to an earlier one:\n%s", got)
			}
			if got := render(t, before); !bytes.Equal(want, got) {
				t.Errorf("rendering changed the EtcdCluster:\n%s", got)
			}
		})
	}
}

// cases are the names of the golden cases.
func cases(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/etcdcluster/*/cluster.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	for i, path := range paths {
		paths[i] = filepath.Base(filepath.Dir(path))
	}
	slices.Sort(paths)
	return paths
}

func load(t testing.TB, name string) *api.EtcdCluster {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/etcdcluster", name, "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &api.EtcdCluster{}
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		t.Fatal(err)
	}
	if name != "default" { // of which the spec says nothing
		withoutTLS(c)
	}
	return c
}

// withoutTLS has a cluster ask for none, unless it asks for some: most cases are not about TLS.
func withoutTLS(c *api.EtcdCluster) {
	if c.Spec.TLS == nil {
		c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}}
	}
}

// firstMember is the member 0 of a cluster, in its first start or, where the cluster has formed, in
// a later one.
func firstMember(c *api.EtcdCluster) Member {
	names := make([]string, 0, replicas(c))
	for i := range replicas(c) {
		names = append(names, c.MemberName(int(i)))
	}
	m := Member{
		Name:                c.MemberName(0),
		Version:             c.Spec.Version,
		InitialCluster:      Bootstrap(c, names),
		InitialClusterState: StateNew,
		Token:               "7c9e6679",
		BootstrapSize:       len(names),
	}
	if c.Status.ClusterID != "" {
		m.InitialCluster, m.InitialClusterState = Resume(c, m.Name), StateExisting
		m.ClusterID, m.MemberID = c.Status.ClusterID, "8211f1d0f64f3269"
	}
	return m
}

func objects(t testing.TB, c *api.EtcdCluster) []runtime.ApplyConfiguration {
	t.Helper()
	m := firstMember(c)
	objects := Static(c, State{Admits: c.Status.ClusterID != "", Labelled: true, Voters: int(replicas(c))})
	if claim := Volume(c, m); claim != nil {
		objects = append(objects, claim)
	}
	pod, err := Pod(c, m)
	if err != nil {
		t.Fatal(err)
	}
	return append(objects, pod)
}

func render(t testing.TB, c *api.EtcdCluster) []byte {
	t.Helper()
	return written(t, objects(t, c))
}

// written are objects as YAML.
func written(t testing.TB, objects []runtime.ApplyConfiguration) []byte {
	t.Helper()
	var all bytes.Buffer
	for i, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			all.WriteString("---\n")
		}
		all.Write(raw)
	}
	return all.Bytes()
}
