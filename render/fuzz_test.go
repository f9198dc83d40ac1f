package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

// FuzzRender feeds any JSON that decodes into a spec: rendering refuses it or gives objects, and
// never panics.
func FuzzRender(f *testing.F) {
	for _, name := range cases(f) {
		raw, err := json.Marshal(load(f, name).Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("a", raw)
	}
	f.Add("", []byte(`{"version":"3.5.19","storage":{"size":"1e999999999"},"resources":{"requests":{"cpu":"1e999999999"}}}`))
	f.Fuzz(func(t *testing.T, name string, spec []byte) {
		c := &api.EtcdCluster{}
		c.Name, c.Namespace = name, "demo"
		if err := json.Unmarshal(spec, &c.Spec); err != nil {
			return
		}
		refused := Validate(c)
		if _, err := Static(c, State{Admits: true}); (err == nil) != (refused == nil) {
			t.Fatalf("Static says %v, Validate %v", err, refused)
		}
		m := Member{Name: c.MemberName(0), Version: c.Spec.Version}
		Volume(c, m)
		pod, err := Pod(c, m)
		if (err == nil) != (refused == nil) {
			t.Fatalf("Pod says %v, Validate %v", err, refused)
		}
		if err != nil {
			return
		}
		if _, err := yaml.Marshal(pod); err != nil {
			t.Fatal(err)
		}
	})
}
