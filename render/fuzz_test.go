package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
)

// FuzzRender feeds any JSON that decodes into a spec: what the schema takes is refused because of
// its flags, or rendered, and nothing panics.
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
		if len(crd.Validate(api.EtcdClusterKind.Kind, c)) > 0 {
			return // nothing is rendered of what the schema refuses
		}
		Static(c, State{Admits: true})
		m := Member{Name: c.MemberName(0), Version: c.Spec.Version}
		Volume(c, m)
		pod, err := Pod(c, m)
		if refused := ValidateFlags(c, flagsOf(c)); (err == nil) != (refused == nil) {
			t.Fatalf("Pod says %v, ValidateFlags %v", err, refused)
		}
		if err != nil {
			return
		}
		if _, err := yaml.Marshal(pod); err != nil {
			t.Fatal(err)
		}
	})
}
