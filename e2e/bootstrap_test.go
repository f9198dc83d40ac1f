//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	var seen func() []status.Status
	var before identity
	testenv.Test(t, features.New("three members on volumes").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			seen = contract.Watch(s, c)
			s.create(c)
		})).
		Assess("no client can reach a half-made cluster", step(func(s *stage) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "db-client"}}
			s.await(service, "open", func() bool { return len(service.Spec.Selector) > 0 })
			for _, claim := range s.claims(c) {
				if claim.Annotations[api.AnnotationMemberID] == "" {
					s.Errorf("the Service for clients leads to members, and the volume of %s says nothing of its member", claim.Name)
				}
			}
		})).
		Assess("kubectl wait and kstatus see it become ready", step(func(s *stage) {
			s.kubectl("wait", "etcdcluster/db", "--for=condition=Ready", "--timeout="+patience.String())
			s.ready(c)
			before = identityOf(c)
			if diff := cmp.Diff([]status.Status{status.InProgressStatus, status.CurrentStatus}, seen()); diff != "" {
				s.Errorf("kstatus on the way: -want +got:\n%s", diff)
			}
			for _, claim := range s.claims(c) {
				if got := claim.Annotations[api.AnnotationMemberID]; got == "" || got != before.Members[claim.Name] {
					s.Errorf("claim %s says member %q, the status %q", claim.Name, got, before.Members[claim.Name])
				}
			}
		})).
		Assess("a Pod writes and reads through the Service", step(func(s *stage) {
			s.awaitEndpoints("db-client", 3)
			s.etcdctl("http://db-client:2379", "put", "key", "value")
			if got := s.etcdctl("http://db-client."+s.ns+".svc:2379", "get", "key", "--print-value-only"); got != "value\n" {
				s.Errorf("read %q, want the value that was written", got)
			}
		})).
		Assess("the Service has only ready members", step(func(s *stage) {
			s.deletePod("db-1")
			s.awaitEndpoints("db-client", 2)
			s.awaitEndpoints("db-client", 3)
			s.ready(c)
		})).
		Assess("kubectl get tells the story", step(func(s *stage) {
			want := [][]string{
				{"NAME", "READY", "AVAILABLE", "VERSION", "AGE"},
				{"db", "3/3", "True", node.Etcd36},
			}
			if diff := cmp.Diff(want, table(s.kubectl("get", "etcdcluster", "db"), 4)); diff != "" {
				s.Errorf("kubectl get etcdcluster: -want +got:\n%s", diff)
			}
			wide := s.kubectl("get", "etcdc", "--output=wide")
			for _, part := range []string{"LEADER", "DB-SIZE", "STATUS", c.Status.Leader, "3 healthy members"} {
				if !strings.Contains(wide, part) {
					s.Errorf("kubectl get --output=wide lacks %q:\n%s", part, wide)
				}
			}
			if got := s.kubectl("get", "etcd", "--output=name"); got != "etcdcluster.etcd.quorate.dev/db\n" {
				s.Errorf("kubectl get etcd (the category) prints %q", got)
			}
		})).
		Assess("kubectl explain tells what a field does", step(func(s *stage) {
			for field, part := range map[string]string{
				"etcdcluster.spec.replicas":                      "hibernates",
				"etcdcluster.spec.storage.retention.whenDeleted": "Retain (default) or Delete",
				"etcdcluster.spec.options.flags":                 "max-request-bytes",
				"etcdcluster.status.clusterID":                   "started empty",
			} {
				if got := strings.Join(strings.Fields(s.kubectl("explain", field)), " "); !strings.Contains(got, part) {
					s.Errorf("kubectl explain %s does not say %q:\n%s", field, part, got)
				}
			}
		})).
		Assess("kubectl scale to 0 hibernates, and back wakes the same cluster", step(func(s *stage) {
			s.kubectl("scale", "etcdcluster", "db", "--replicas=0")
			s.kubectl("wait", "etcdcluster/db", "--for=condition=Ready", "--timeout="+patience.String())
			if pods, claims := s.pods(c), s.claims(c); len(pods) != 0 || len(claims) != 3 {
				s.Errorf("hibernated with %d Pods and %d claims, want 0 and 3", len(pods), len(claims))
			}
			s.kubectl("scale", "etcdcluster", "db", "--replicas=3")
			s.kubectl("wait", "etcdcluster/db", "--for=condition=Ready", "--timeout="+patience.String())
			s.ready(c)
			if diff := cmp.Diff(before, identityOf(c)); diff != "" {
				s.Errorf("identity changed: -want +got:\n%s", diff)
			}
			s.awaitEndpoints("db-client", 3)
			if got := s.etcdctl("http://db-client:2379", "get", "key", "--print-value-only"); got != "value\n" {
				s.Errorf("read %q, want the value that was written", got)
			}
		})).
		Feature())
}

// TestVersions: every supported minor forms a cluster and serves under restricted Pod Security, on
// disk and in memory.
func TestVersions(t *testing.T) {
	t.Parallel()
	story := func(name, version string, medium api.Medium) features.Feature {
		return features.New(name).Assess("serves", step(func(s *stage) {
			c := s.cluster(name, 1)
			c.Spec.Version, c.Spec.Storage.Medium = version, medium
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			if c.Status.Version != version {
				s.Errorf("status.version is %s, want %s", c.Status.Version, version)
			}
			cli := s.etcd(c)
			s.put(cli, "key", "value")
			s.want(cli, "key", "value")
		})).Feature()
	}
	testenv.TestInParallel(t,
		story("etcd35", node.Etcd35, api.MediumDisk),
		story("etcd36", node.Etcd36, api.MediumDisk),
		story("etcd37", node.Etcd37, api.MediumDisk),
		story("memory", node.Etcd37, api.MediumMemory),
	)
}

// table splits what kubectl prints into the first cells of each row; later ones hold ages.
func table(text string, cells int) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		row := strings.Fields(line)
		if len(rows) > 0 && len(row) > cells {
			row = row[:cells]
		}
		rows = append(rows, row)
	}
	return rows
}
