//go:build env

package reconcile_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

var record = flag.String("record", "", "write clusters of this code into testdata/previous, as those of the release that is called so")

// clustersToRecord are what a later release has to cope with: first members, with hardly anything
// in the spec and with much; and members that came later.
var clustersToRecord = map[string]func(s *stage) *api.EtcdCluster{
	"formed": func(s *stage) *api.EtcdCluster {
		c := s.cluster("db", 3)
		s.create(c)
		return c
	},
	"full": func(s *stage) *api.EtcdCluster {
		c := s.cluster("db", 3)
		c.Spec.Version = etcd35
		c.Spec.Image = &api.Image{PullPolicy: corev1.PullAlways, PullSecrets: []api.SecretReference{{Name: "mirror"}}}
		c.Spec.Options = &api.Options{
			HeartbeatInterval: new(api.Duration("200ms")), ElectionTimeout: new(api.Duration("2s")), SnapshotCount: new(int64(5000)),
			QuotaBackendSize: new(resource.MustParse("256Mi")),
			AutoCompaction:   &api.AutoCompaction{Mode: "Periodic", Retention: "8h"},
			Flags:            map[string]string{"max-txn-ops": "256", "experimental-compaction-batch-limit": "500"},
		}
		c.Spec.Resources = &api.Resources{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1024Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("2Gi")},
		}
		c.Spec.Scheduling = &api.Scheduling{Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}}
		c.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "storage"}, Annotations: map[string]string{"example.com/contact": "oncall"}}
		s.create(c)
		return c
	},
	"grown": func(s *stage) *api.EtcdCluster {
		c := s.cluster("db", 1)
		s.create(c)
		s.ready(c)
		s.change(c, func() { c.Spec.Replicas = new(int32(3)) })
		return c
	},
}

// TestRecord writes what this code leaves in an API server into testdata/previous, where later
// releases find it.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("it writes only where it is asked to: make record RELEASE=name")
	}
	for name, create := range clustersToRecord {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := create(s)
			s.await(c, "ready", func() bool {
				return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == int(*c.Spec.Replicas) && c.Status.Operation == nil
			})
			var all bytes.Buffer
			for _, o := range s.everything(c) {
				raw, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if all.Len() > 0 {
					all.WriteString("---\n")
				}
				all.Write(raw)
			}
			file := filepath.Join("testdata/previous", *record, name+".yaml")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, all.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// everything of a cluster, with the kind in each object.
func (s *stage) everything(c *api.EtcdCluster) []client.Object {
	s.Helper()
	cluster := &api.EtcdCluster{}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(c), cluster); err != nil {
		s.Fatal(err)
	}
	all := []client.Object{cluster}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}} {
		if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
			s.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			all = append(all, o.(client.Object))
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	for _, o := range all {
		kind, err := apiutil.GVKForObject(o, s.scheme)
		if err != nil {
			s.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
	}
	return all
}
