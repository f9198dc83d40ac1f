package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// lost is the world in which db-1 and db-2 are gone for good, for an hour.
func (w *world) lost(policy api.QuorumLossPolicy) {
	w.cluster.Spec.Recovery = &api.Recovery{QuorumLoss: policy}
	w.cluster.Spec.Backup = &api.Backup{Store: &api.BackupStore{S3: &api.S3Store{Bucket: "backups", Prefix: "prod"}}}
	w.cluster.Status.QuorumLoss = &api.QuorumLoss{ClusterID: "c0", Since: lostAt}
	for _, name := range []string{"db-1", "db-2"} {
		delete(w.pods, name)
		delete(w.claims, name)
		delete(w.asked.endpoints, name)
	}
	e := w.asked.endpoints["db-0"]
	e.Leader = 0
	w.asked.endpoints["db-0"], w.asked.members = e, nil
	w.pods["db-0"].Status.Conditions = nil // etcd is not ready
	for n := range w.pods["db-0"].Status.ContainerStatuses {
		w.pods["db-0"].Status.ContainerStatuses[n].Ready = false
	}
	w.address()
	w.managed()
}

func noMetrics(context.Context, string, int) (membership.Endpoint, error) {
	return membership.Endpoint{}, errors.New("no metrics")
}

// TestRecoverOutcome: what is written down of the EtcdRestore that is created where a majority is
// lost.
func TestRecoverOutcome(t *testing.T) {
	t.Parallel()
	restores := schema.GroupResource{Group: "etcd.quorate.dev", Resource: "etcdrestores"}
	type result struct {
		Created bool
		Restore string // status.quorumLoss.restore
		Stalled string // reason
	}
	of := func(of string, labels map[string]string) *api.EtcdRestore {
		return etcdRestore(func(e *api.EtcdRestore) { e.Name, e.Spec.ClusterRef.Name, e.Labels = lossRestore, of, labels })
	}
	conflict := apierrors.NewConflict(restores, lossRestore, errors.New("exists"))
	cases := map[string]struct {
		reason string
		answer error
		beside []client.Object
		want   result
	}{
		"Created":     {reason: "it was created: that is written down when it is seen", want: result{Created: true}},
		"ServerFails": {reason: "it was not created, and is to be tried again", answer: apierrors.NewInternalError(errors.New("etcdserver: leader changed"))},
		"Timeout":     {reason: "nor was it here", answer: apierrors.NewTimeoutError("try again", 1)},
		"NameTaken": {
			reason: "an EtcdRestore of another cluster has that name: none was created for this loss", answer: conflict, beside: []client.Object{of("other", nil)},
			want: result{Stalled: api.ReasonForeignObject},
		},
		"Seen": {
			reason: "it is there", beside: []client.Object{of("db", map[string]string{api.LabelQuorumLoss: string(newCluster().UID)})},
			want: result{Restore: lossRestore, Stalled: api.ReasonDataLost},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.lost(api.QuorumLossFromSurvivor)
			s := newStub(t, func(w write) error {
				if w.Kind == "EtcdRestore" && w.Verb == "apply" {
					return tc.answer
				}
				return nil
			}, append(w.objects(), tc.beside...)...)
			s.Dial, s.Scrape = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil }), noMetrics
			s.sightings.of(w.cluster, time.Now().Add(-time.Hour))
			_, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: turnOf("db")})
			got := result{Created: slices.ContainsFunc(s.writes, func(w write) bool { return w.Kind == "EtcdRestore" })}
			if n := len(s.status); n > 0 {
				got.Restore = s.status[n-1].QuorumLoss.Restore
				if stalled := meta.FindStatusCondition(s.status[n-1].Conditions, api.ConditionStalled); stalled != nil {
					got.Stalled = stalled.Reason
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: error %v: -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestSurvivorChosen: whose data is taken where no member is named.
func TestSurvivorChosen(t *testing.T) {
	t.Parallel()
	gone := func(seen *observed, n int) {
		i := &seen.Instances[n]
		i.Volume, i.Pod, i.Endpoint = membership.Volume{}, membership.Pod{}, membership.Endpoint{}
	}
	type result struct{ Name, Why string }
	cases := map[string]struct {
		reason string
		asked  string
		seen   func(*observed)
		want   result
	}{
		"Left": {
			reason: "one is left", seen: func(seen *observed) { gone(seen, 1); gone(seen, 2) }, want: result{Name: "member/db-0"},
		},
		"Learner": {
			reason: "a learner may have any part of the data, and nothing tells how much: it is taken only where a person names it",
			seen: func(seen *observed) {
				gone(seen, 1)
				gone(seen, 2)
				seen.Instances[0].Endpoint.Learner, seen.Instances[0].Volume.Joins = true, seen.Instances[0].ID
			},
			want: result{Why: "learner"},
		},
		"LearnerBesideVoter": {
			reason: "a learner is no second one to choose from",
			seen: func(seen *observed) {
				gone(seen, 1)
				seen.Instances[2].Endpoint.Learner, seen.Instances[2].Volume.Joins = true, seen.Instances[2].ID
			},
			want: result{Name: "member/db-0"},
		},
		"RemovedMember": {
			reason: "etcd had removed it before the loss, and its volume is not marked yet (membership: removed, retired): it lacks what came later",
			seen:   func(seen *observed) { gone(seen, 1); gone(seen, 2); seen.Instances[0].ID = 0 },
			want:   result{Why: "no member"},
		},
		"RemovedMemberBesideVoter": {
			reason: "nor is it a second one", seen: func(seen *observed) { gone(seen, 1); seen.Instances[2].ID = 0 }, want: result{Name: "member/db-0"},
		},
		"Corrupt": {
			reason: "etcd has found that its data differs from that of the others",
			seen: func(seen *observed) {
				gone(seen, 1)
				gone(seen, 2)
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmCorrupt, Member: seen.Instances[0].ID}}
			},
			want: result{Why: "CORRUPT"},
		},
		"FormerNamed": {
			reason: "the restored cluster of one is lost as well. The volume of the survivor is there, set aside, and a person asks for it by its name",
			asked:  "db-1",
			seen: func(seen *observed) {
				seen.Former = []membership.Instance{{Name: "db-1", Ordinal: 1, Volume: membership.Volume{UID: "claim-of-db-1", ClusterID: 0xb0, MemberID: 0xb1, Aside: "restore"}}}
				seen.Instances = []membership.Instance{{Name: "db-3", Ordinal: 3, ID: 0xa3}}
			},
			want: result{Why: "set aside"},
		},
		"FormerLeft": {
			reason: "nor is it said that nothing is left",
			seen: func(seen *observed) {
				seen.Former = []membership.Instance{{Name: "db-1", Ordinal: 1, Volume: membership.Volume{UID: "claim-of-db-1", ClusterID: 0xb0, MemberID: 0xb1, Aside: "restore"}}}
				seen.Instances = []membership.Instance{{Name: "db-3", Ordinal: 3, ID: 0xa3}}
			},
			want: result{Why: "set aside"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			seen.Reach, seen.Members = membership.ReachSome, nil
			for n := range seen.Instances {
				seen.Instances[n].Endpoint.Leader = 0
			}
			tc.seen(&seen)
			c := newCluster()
			c.Status.ClusterID = "c0"
			c.Status.Restore = inPhase(api.RestorePending, func(r *api.ClusterRestore) { r.Survivor = &api.Survivor{Member: tc.asked} })
			got, why := survivor(c, seen.Observed)
			name := ""
			if got != nil {
				name = got.Name
			}
			if name != tc.want.Name || !strings.Contains(why, tc.want.Why) {
				t.Errorf("%s: got %q, %q; want %q, and %q in why", tc.reason, name, why, tc.want.Name, tc.want.Why)
			}
		})
	}
}
