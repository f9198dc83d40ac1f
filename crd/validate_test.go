package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
)

func cluster(changes ...func(*api.EtcdCluster)) *api.EtcdCluster {
	c := &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"},
		Spec:       api.EtcdClusterSpec{Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")}},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func snapshotCount(n int64) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: &n} }
}

// TestValidate: an object as Go has it is judged like one that a person has written. What the
// schema says of each field is in api/v1alpha1/validation_*_test.go.
func TestValidate(t *testing.T) {
	t.Parallel()
	const (
		small = `spec.storage.size: Invalid value: "1e999999999": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`
		count = `spec.options.snapshotCount: Invalid value: 50: spec.options.snapshotCount in body should be greater than or equal to 100`
	)
	cases := map[string]struct {
		reason  string
		object  *api.EtcdCluster
		earlier *api.EtcdCluster
		want    []string
	}{
		"Minimal": {reason: "a version and a size are enough", object: cluster()},
		"Status": {
			reason: "Quorate writes it, and an API server judges it then",
			object: cluster(func(c *api.EtcdCluster) { c.Status.Operation = &api.Operation{} }),
		},
		"Enum": {
			reason: "a value that is no value of the type",
			object: cluster(func(c *api.EtcdCluster) { c.Spec.Storage.Retention = &api.Retention{WhenScaled: "Nope"} }),
			want:   []string{`spec.storage.retention.whenScaled: Unsupported value: "Nope": supported values: "Retain", "Delete"`},
		},
		"Huge": {
			reason: "a quantity that cannot be compared with another",
			object: cluster(func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("1e999999999") }),
			want:   []string{small},
		},
		"Fraction": {
			reason: "Go writes a small fraction in a unit that no person would choose",
			object: cluster(func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.0005")}}
			}),
		},
		"FractionOfLarge": {
			reason: "and a fraction of a large unit in thousandths of the smallest",
			object: cluster(func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("1000.1Gi") }),
		},
		"Refused": {reason: "too few", object: cluster(snapshotCount(50)), want: []string{count}},
		"Ratcheted": {
			reason: "what is as it was is right",
			object: cluster(snapshotCount(50), func(c *api.EtcdCluster) { c.Spec.Replicas = new(int32(5)) }), earlier: cluster(snapshotCount(50)),
		},
		"Changed": {reason: "and what is not is judged", object: cluster(snapshotCount(50)), earlier: cluster(snapshotCount(40)), want: []string{count}},
		"Transition": {
			reason: "a change that the schema refuses",
			object: cluster(func(c *api.EtcdCluster) { c.Spec.Storage.StorageClassName = new("other") }), earlier: cluster(),
			want: []string{`spec.storage.storageClassName: Invalid value: spec.storage.storageClassName: a volume keeps its class; set spec.storage.changePolicy to Replace, for the members to be replaced one by one on new volumes, or revert it`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := crd.Validate("EtcdCluster", tc.object)
			if tc.earlier != nil {
				errs = crd.ValidateUpdate("EtcdCluster", tc.object, tc.earlier)
			}
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownKind: nothing is taken that cannot be judged.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	want := []string{`<nil>: Internal error: no definition of kind "Pod"`}
	var got []string
	for _, err := range crd.Validate("Pod", cluster()) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
}

func BenchmarkValidate(b *testing.B) {
	c := cluster(func(c *api.EtcdCluster) {
		c.Spec.Options = &api.Options{Flags: map[string]string{"max-request-bytes": "3145728", "pre-vote": "true"}, SnapshotCount: new(int64(10000))}
		c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi")}}
		c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged}, Peer: &api.PeerTLS{Mode: api.TLSManaged}}
	})
	crd.Validate("EtcdCluster", c) // the rules are compiled once
	b.ReportAllocs()
	for b.Loop() {
		if errs := crd.Validate("EtcdCluster", c); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
