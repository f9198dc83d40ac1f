//go:build env

package reconcile_test

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
)

// minAvailable is what the disruption budget of the cluster keeps now.
func (s *stage) minAvailable(c *api.EtcdCluster) int32 {
	budget := &policyv1.PodDisruptionBudget{}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(c), budget); err != nil {
		s.Errorf("get the budget: %v", err)
		return 0
	}
	return budget.Spec.MinAvailable.IntVal
}

// kept waits until the budget keeps so many.
func (s *stage) kept(c *api.EtcdCluster, want int32) {
	s.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
	s.awaitObject(budget, "kept by the quorum rule", func() bool { return budget.UID != "" && budget.Spec.MinAvailable.IntVal == want })
}

// TestBudget: whenever a member is changed, deleted or voted on, the disruption budget keeps all
// already; at rest, and where only a person can go on, it keeps a quorum. An operator that dies
// leaves it as it is.
func TestBudget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		change  func(*api.EtcdClusterSpec)
		stalled string
		members int32 // afterwards
		crash   bool  // at the first change
	}{
		"Image": {reason: "one after the other is restarted", change: func(s *api.EtcdClusterSpec) { s.Version = etcd37 }, members: 3},
		"Crash": {reason: "a drain may come before the next operator", change: func(s *api.EtcdClusterSpec) { s.Version = etcd37 }, members: 3, crash: true},
		"Pod": {
			reason: "one after the other is recreated", members: 3,
			change: func(s *api.EtcdClusterSpec) { s.Options = &api.Options{Flags: map[string]string{"max-txn-ops": "256"}} },
		},
		"Stalled": {
			reason: "it was rolled back, and no drain waits for a person", change: func(s *api.EtcdClusterSpec) { s.Version = missing },
			stalled: api.ReasonChangeFailed, members: 3,
		},
		"Grows": {reason: "learners come", change: func(s *api.EtcdClusterSpec) { s.Replicas = new(int32(5)) }, members: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, images(spoiled(t)))
			s.wire = &wire{}
			f := newFault("", "")
			c := s.cluster("db", 3)
			crash := s.operate(f.between)
			s.born(c)
			s.kept(c, 2)
			before := *c.DeepCopy()
			all := max(3, tc.members)
			var mu sync.Mutex
			changed := map[string]bool{}
			met := make(chan struct{})
			check := func(what string) {
				if got := s.minAvailable(c); got < all {
					t.Errorf("%s: at %s the budget keeps %d of %d", tc.reason, what, got, all)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(changed) == 0 {
					close(met)
				}
				changed[what] = true
			}
			f.around = func(what string, effect func() error) error {
				if verb := verbOf(what); verb == "AddLearner" || verb == "Promote" || verb == "MoveLeader" {
					check(what)
				}
				return effect()
			}
			f.arm()
			s.wire.answer(func(r *http.Request) (bool, *http.Response, error) {
				if !strings.Contains(r.URL.Path, "/pods/") || isDryRun(r) {
					return false, nil, nil
				}
				what := r.Method + " " + path.Base(r.URL.Path)
				mu.Lock()
				known := changed[what]
				mu.Unlock()
				switch {
				case r.Method == http.MethodDelete:
					check(what)
				case r.Method == http.MethodPatch && !known && tc.change != nil && r.GetBody != nil:
					body, err := r.GetBody()
					if err != nil {
						return false, nil, err
					}
					raw, err := io.ReadAll(body)
					if err != nil {
						return false, nil, err
					}
					for _, version := range []string{etcd37, missing} { // a member that runs that is maintained later, when all is over
						if bytes.Contains(raw, []byte(`etcd:v`+version+`"`)) {
							check(what)
						}
					}
				}
				return false, nil, nil
			})
			s.change(c, func() { tc.change(&c.Spec) })
			if tc.crash {
				<-met
				crash()
				if got := s.minAvailable(c); got != all {
					t.Errorf("%s: after a crash the budget keeps %d", tc.reason, got)
				}
				s.operate(func(*reconcile.Reconciler) {})
			}
			if tc.stalled != "" {
				s.stalled(c, tc.stalled)
			} else {
				s.await(c, "ready recreated", func() bool {
					return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Generation > before.Generation && len(c.Status.Members) == int(tc.members)
				})
			}
			s.kept(c, tc.members/2+1)
			s.rests(c)
			mu.Lock()
			defer mu.Unlock()
			if len(changed) == 0 {
				t.Errorf("void: %s: nothing was changed", tc.reason)
			}
		})
	}
}
