//go:build e2e

package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/render"
)

// TestSurvival: Pods come back as the members they were, and no acknowledged write is lost,
// whichever is killed.
func TestSurvival(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	var before identity
	var clients *history.Load
	uids := map[string]string{}
	unchanged := func(s *stage, renewed int) {
		s.Helper()
		s.ready(c)
		if diff := cmp.Diff(before, identityOf(c)); diff != "" {
			s.Errorf("identity changed: -want +got:\n%s", diff)
		}
		fresh := 0
		for _, pod := range s.pods(c) {
			if uids[pod.Name] != string(pod.UID) {
				fresh++
			}
			uids[pod.Name] = string(pod.UID)
		}
		if fresh != renewed {
			s.Errorf("%d Pods are new, want %d", fresh, renewed)
		}
	}
	testenv.Test(t, features.New("a cluster under writes").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			before = identityOf(c)
			unchanged(s, 3)
			clients = s.load(c, resizeFloor)
		})).
		Assess("a deleted Pod comes back as the same member", step(func(s *stage) {
			s.deletePod("db-1")
			s.notReady(c)
			unchanged(s, 1)
		})).
		Assess("the leader's Pod, killed without grace, comes back as the same member", step(func(s *stage) {
			s.deletePod(c.Status.Leader, client.GracePeriodSeconds(0))
			s.notReady(c)
			unchanged(s, 1)
		})).
		Assess("all Pods deleted at once come back as the same cluster", step(func(s *stage) {
			for _, pod := range s.pods(c) {
				s.deletePod(pod.Name)
			}
			s.notReady(c)
			unchanged(s, 3)
		})).
		Assess("a killed operator changes nothing", step(func(s *stage) {
			s.killOperator()
			s.deletePod("db-0")
			s.notReady(c)
			unchanged(s, 1)
		})).
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { s.checkLoad(clients, survivalPause) })).
		Feature())
}

// TestOperatorKilledDuringBootstrap: the next operator goes on from what is there, as the same
// first start.
func TestOperatorKilledDuringBootstrap(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	there := func(s *stage, o client.Object) {
		s.Helper()
		s.await(o, "there", func() bool { return o.GetUID() != "" })
	}
	testenv.Test(t, features.New("killed again and again").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			contract.Watch(s, c)
			s.create(c)
		})).
		Assess("when the first volume is there", step(func(s *stage) {
			there(s, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "db-0"}})
			s.killOperator()
		})).
		Assess("when the first Pod is there", step(func(s *stage) {
			there(s, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "db-0"}})
			s.killOperator()
		})).
		Assess("when the cluster has just formed", step(func(s *stage) {
			s.await(c, "formed", func() bool { return c.Status.ClusterID != "" })
			s.killOperator()
		})).
		Assess("one cluster of three members comes of it", step(func(s *stage) {
			s.ready(c)
			if pods, claims := len(s.pods(c)), len(s.claims(c)); pods != 3 || claims != 3 {
				s.Errorf("%d Pods and %d claims, want 3 of each", pods, claims)
			}
			cli := s.etcd(c)
			s.put(cli, "key", "value")
			s.want(cli, "key", "value")
		})).
		Feature())
}

// TestRetention: volumes outlive their EtcdCluster or go with it, as the spec says.
func TestRetention(t *testing.T) {
	t.Parallel()
	story := func(name string, replicas int32, retention *api.Retention, after func(s *stage, again *api.EtcdCluster, before identity)) features.Feature {
		var before identity
		return features.New(name).
			Assess("deleted", step(func(s *stage) {
				c := s.cluster(name, replicas)
				c.Spec.Storage.Retention = retention
				s.create(c)
				s.ready(c)
				before = identityOf(c)
				s.put(s.etcd(c), "key", "value")
				pods := s.pods(c)
				if err := s.Delete(s.Context(), c); err != nil {
					s.Fatal(err)
				}
				s.gone(c)
				for i := range pods {
					s.gone(&pods[i])
				}
			})).
			Assess("created again", step(func(s *stage) { after(s, s.cluster(name, replicas), before) })).
			Feature()
	}
	testenv.TestInParallel(t,
		story("retain", 3, nil, func(s *stage, again *api.EtcdCluster, before identity) {
			if claims := s.claims(again); len(claims) != 3 {
				s.Fatalf("%d claims are left, want 3", len(claims))
			}
			contract.Watch(s, again)
			s.create(again)
			s.ready(again)
			if diff := cmp.Diff(before, identityOf(again)); diff != "" {
				s.Errorf("over retained volumes: -want +got:\n%s", diff)
			}
			s.want(s.etcd(again), "key", "value")
		}),
		story("delete", 1, &api.Retention{WhenDeleted: api.RetentionDelete}, func(s *stage, again *api.EtcdCluster, before identity) {
			for _, claim := range s.claims(again) {
				s.gone(&claim)
			}
			contract.Watch(s, again)
			s.create(again)
			s.ready(again)
			if identityOf(again).Cluster == before.Cluster {
				s.Errorf("a new cluster has the ID of the deleted one, %s", before.Cluster)
			}
			if kvs := s.get(s.etcd(again), "key").Kvs; len(kvs) != 0 {
				s.Errorf("a new cluster has %v", kvs)
			}
		}),
	)
}

func (s *stage) notReady(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "not ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionFalse) })
}

// operating is held by stories that count what the operator does, and held alone by one that kills
// it.
var operating sync.RWMutex

// killOperator kills the process as a crash would, without time to give its lease back, and waits
// for the next one.
func (s *stage) killOperator() {
	s.Helper()
	operating.Lock()
	defer operating.Unlock()
	if err := killOperator(s.Context(), render.InstallNamespace); err != nil {
		s.Fatal(err)
	}
}

func killOperator(ctx context.Context, namespace string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quorate"}}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return err
	}
	held := ptr.Deref(lease.Spec.HolderIdentity, "")
	pods := client.MatchingLabels{"app.kubernetes.io/name": "quorate"}
	if err := kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), pods, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	return await(ctx, lease, "held by another operator", func() bool {
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		return holder != "" && holder != held
	})
}
