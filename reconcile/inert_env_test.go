//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/reconcile"
)

// TestInert: where no choice is ours, nothing is changed, the condition says what a person can do,
// and once it is done all is well again.
func TestInert(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		strike  func(s *stage, c *api.EtcdCluster) (undo func())
		stalled string
		message string
	}{
		"ForeignLearner": {
			reason: "a learner that a user added is left alone",
			strike: func(s *stage, c *api.EtcdCluster) func() {
				return s.addForeign(c, (*clientv3.Client).MemberAddAsLearner)
			},
			stalled: api.ReasonForeignMember, message: "etcdctl member remove",
		},
		"ForeignVoter": {
			reason:  "so is a voter, though it counts for the quorum and is not there",
			strike:  func(s *stage, c *api.EtcdCluster) func() { return s.addForeign(c, (*clientv3.Client).MemberAdd) },
			stalled: api.ReasonForeignMember, message: "etcdctl member remove",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, _ := healing{replaceAfter: soonReplaced}.struck(s)
			before := identityOf(c)
			undo := tc.strike(s, c)
			if message := s.stalled(c, tc.stalled); !strings.Contains(message, tc.message) {
				t.Errorf("%s: the message does not say %q: %s", tc.reason, tc.message, message)
			}
			s.deletePod("db-1") // a Pod comes back all the same, so there is work for the operator
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}}
			s.awaitPod(pod, "running again", func() bool {
				return pod.DeletionTimestamp.IsZero() && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
			})
			s.stalled(c, tc.stalled)
			if diff := cmp.Diff(before, identityOf(c)); diff != "" || c.Status.NextOrdinal != 3 {
				t.Errorf("%s: next ordinal %d, members -want +got:\n%s", tc.reason, c.Status.NextOrdinal, diff)
			}
			undo()
			s.awaitMembers(c, namesOf(before)...)
			load.await(50)
			load.check()
			s.clean(c, namesOf(before)...)
		})
	}
}

// addForeign adds a member that is not ours, and returns what removes it.
func (s *stage) addForeign(c *api.EtcdCluster, add func(*clientv3.Client, context.Context, []string) (*clientv3.MemberAddResponse, error)) func() {
	s.Helper()
	const foreign = "http://127.0.0.1:1"
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error {
		_, err := add(etcd, ctx, []string{foreign})
		return err
	}, rpctypes.ErrPeerURLExist)
	return func() {
		s.byHand(func(ctx context.Context) error {
			list, err := etcd.MemberList(ctx)
			if err != nil {
				return err
			}
			for _, m := range list.Members {
				if m.PeerURLs[0] == foreign {
					_, err = etcd.MemberRemove(ctx, m.ID)
				}
			}
			return err
		}, rpctypes.ErrMemberNotFound)
	}
}

// TestMajorityLost: without a quorum no member is replaced, however long it is down.
func TestMajorityLost(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		strike func(*stage, *api.EtcdCluster, string)
	}{
		"Wiped":   {reason: "the content of two volumes is gone", strike: wipe},
		"Deleted": {reason: "two volumes are gone", strike: deleteVolume},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(soonReplaced)}
			contract.Watch(s, c)
			s.create(c)
			s.put(s.ready(c), "key", "value")
			before := identityOf(c)
			kept := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
			s.must(s.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
			enough := time.After(12 * time.Second) // more than a member may be down
			tc.strike(s, c, "db-1")
			tc.strike(s, c, "db-2")
			<-enough
			s.change(c, func() { c.Spec.Replicas = new(int32(5)) }) // and no member is added either
			if message := s.stalled(c, api.ReasonDataLost); !strings.Contains(message, "create an EtcdRestore from the data of a member (spec.source.survivor), db-0") {
				t.Errorf("%s: the message says not what to do: %s", tc.reason, message)
			}
			if diff := cmp.Diff(before, identityOf(c)); diff != "" || c.Status.NextOrdinal != 3 {
				t.Errorf("%s: next ordinal %d, members -want +got:\n%s", tc.reason, c.Status.NextOrdinal, diff)
			}
			for _, claim := range s.claims(c) {
				if claim.Name == kept.Name && claim.UID != kept.UID || claim.Name > "db-2" {
					t.Errorf("%s: there is a new volume %s", tc.reason, claim.Name)
				}
			}
		})
	}
}

// TestPromotedByHand: a person is faster than the operator, which has written down its intention
// already.
func TestPromotedByHand(t *testing.T) {
	s := newStage(t)
	intends, promoted := make(chan struct{}), make(chan struct{})
	s.operate(func(r *reconcile.Reconciler) {
		r.Client = &holding{Client: r.Client, step: "Promote", reached: intends, goOn: promoted}
	})
	c := s.cluster("db", 1)
	contract.Watch(s, c)
	s.create(c)
	etcd := s.ready(c)
	l := s.load(c)
	s.change(c, func() { c.Spec.Replicas = new(int32(3)) })
	select {
	case <-intends:
	case <-time.After(patience):
		t.Fatal("the operator has not come to promote the learner")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	members, err := etcd.MemberList(ctx)
	s.must(err)
	for _, m := range members.Members {
		if m.IsLearner {
			s.byHand(func(ctx context.Context) error {
				_, err := etcd.MemberPromote(ctx, m.ID)
				return err
			}, rpctypes.ErrMemberNotLearner)
		}
	}
	close(promoted)
	s.awaitMembers(c, "db-0", "db-1", "db-2")
	l.check()
	s.clean(c, "db-0", "db-1", "db-2")
}

// holding is a client that holds up the first write of an intent.
type holding struct {
	client.Client
	step          string
	reached, goOn chan struct{}
}

func (h *holding) Status() client.SubResourceWriter {
	return &holdingStatus{SubResourceWriter: h.Client.Status(), holding: h}
}

type holdingStatus struct {
	client.SubResourceWriter
	*holding
}

func (h *holdingStatus) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if ac, ok := o.(*apiac.EtcdClusterApplyConfiguration); ok && ac.Status.Operation != nil && fmt.Sprint(*ac.Status.Operation.Step) == h.step {
		select {
		case <-h.reached:
		default:
			close(h.reached)
		}
		select {
		case <-h.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.SubResourceWriter.Apply(ctx, o, opts...)
}
