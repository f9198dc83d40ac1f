//go:build env

package reconcile_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// laden creates the cluster, and puts a load on it.
func (s *stage) laden(c *api.EtcdCluster) *load {
	s.Helper()
	contract.Watch(s, c)
	s.create(c)
	s.ready(c)
	return s.load(c)
}

// TestThrottled: an API server that refuses part of what it is asked for makes a resize slower, and
// nothing else.
func TestThrottled(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		of     int // one request in so many
		header http.Header
	}{
		"Later": {reason: "told when to come again, the client waits by itself", of: 10, header: http.Header{"Retry-After": {"1"}}},
		"No":    {reason: "an error ends the pass, and the next one begins from fresh facts", of: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire = &wire{}
			s.operate()
			c := s.cluster("db", 1)
			load := s.laden(c)
			s.wire.answer(tooMany(tc.of, tc.header))
			for _, size := range []int32{3, 1} {
				s.resize(c, size)
				s.sized(c, int(size))
			}
			t.Logf("%d requests were refused, %d writes were not", s.wire.refusals(), len(s.wire.writes()))
			if s.wire.refusals() == 0 {
				t.Errorf("void: nothing was refused")
			}
			// A name is passed over where its claim was refused and a later one was made in the
			// same pass.
			if c.Status.NextOrdinal > 5 {
				t.Errorf("%s: three members were made under ordinals up to %d", tc.reason, c.Status.NextOrdinal)
			}
			load.await(50)
			load.check()
		})
	}
}

// away is for how long there is no API server.
const away = 20 * time.Second

// TestAway: the API server goes in the middle of a change, and etcd stays. What was decided is not
// done any more, since the spec may have changed, and so it has; when the API server is back, that
// spec counts. The caches notice that it is back one after the other, up to half a minute later:
// for so long each of them is of another time.
func TestAway(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		at        string // the change of etcd's members before which the API server goes
		size      int32
		meanwhile func(s *stage, c *api.EtcdCluster)
		end       []string
		next      int32
	}{
		"Promoting": {
			reason: "a learner that may not be wanted any more gets no vote",
			at:     "Promote.Member.db-3#1", size: 5,
			meanwhile: func(s *stage, c *api.EtcdCluster) { s.resize(c, 3) },
			end:       []string{"db-0", "db-1", "db-2"}, next: 5,
		},
		"Removing": {
			reason: "a voter that may be wanted again stays",
			at:     "Remove.Member.db-1#1", size: 1,
			meanwhile: func(s *stage, c *api.EtcdCluster) { s.resize(c, 3) },
			end:       []string{"db-0", "db-1", "db-3"}, next: 4,
		},
		"MemberGone": {
			reason: "without the Pod that is gone, and which is not known, there would be no quorum",
			at:     "Remove.Member.db-1#1", size: 1,
			meanwhile: func(s *stage, _ *api.EtcdCluster) {
				s.deletePod("db-1")
				s.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}})
			},
			end: []string{"db-0"}, next: 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire = &wire{}
			f := newFault(tc.at, "Unhealthy")
			f.then = s.wire.cut
			s.operate(f.between)
			c := s.cluster("db", 3)
			load := s.laden(c)
			f.arm()
			s.resize(c, tc.size)
			s.meets(f)
			back := time.After(away)
			done, members := f.effects(), s.listed(c)
			tc.meanwhile(s, c)
			<-back
			if diff := cmp.Diff(members, s.listed(c, clientv3.WithSerializable())); diff != "" { // there may be no quorum
				t.Errorf("%s: etcd's members changed while it was not known what is wanted: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(done, f.effects()); diff != "" || s.wire.refusals() == 0 {
				t.Errorf("%s: with %d requests refused there were effects: -want +got:\n%s", tc.reason, s.wire.refusals(), diff)
			}
			s.wire.mend()
			s.awaitMembers(c, tc.end...)
			s.clean(c, tc.end...)
			if c.Status.NextOrdinal != tc.next {
				t.Errorf("%s: ordinals up to %d were given, want %d", tc.reason, c.Status.NextOrdinal, tc.next)
			}
			load.await(50)
			load.check()
		})
	}
}

// listed are etcd's members, voters and learners by name.
func (s *stage) listed(c *api.EtcdCluster, how ...clientv3.OpOption) map[string]bool {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	list, err := s.etcd(c).MemberList(ctx, how...)
	s.must(err)
	learners := map[string]bool{}
	for _, m := range list.Members {
		learners[m.Name] = m.IsLearner
	}
	return learners
}
