//go:build env

package reconcile_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// TestComesBackOtherwise: a cluster that was asleep, or deleted with its volumes kept, is asked to
// be something else when it comes back. It comes back as what it was, with its data, and is then
// changed as a running one would be.
func TestComesBackOtherwise(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		size    int32 // 3 by default
		from    string
		towards string // what it is on its way to when it goes, with one member changed
		deleted bool   // and not asleep
		as      func(*api.EtcdClusterSpec)
		refused string // the first way that it is told, where there is none from here
	}{
		"AsleepUp": {
			reason: "the version is raised while nothing runs",
			from:   etcd36, as: func(s *api.EtcdClusterSpec) { s.Version = etcd37 },
		},
		"AsleepDown": {
			reason: "only a running etcd can prepare its data for the earlier minor",
			from:   etcd37, as: func(s *api.EtcdClusterSpec) { s.Version = etcd36 },
		},
		"AsleepMidwayOn": {
			reason: "it goes on where it was",
			from:   etcd35, towards: etcd37, as: func(s *api.EtcdClusterSpec) { s.Version = etcd37 },
		},
		"AsleepMidwayBack": {
			reason: "it goes back, and one that had not changed never does",
			from:   etcd35, towards: etcd37, as: func(s *api.EtcdClusterSpec) { s.Version = etcd35 },
		},
		"AsleepMidwayDownBack": {
			reason: "a downgrade that is under way is taken back",
			from:   etcd37, towards: etcd36, as: func(s *api.EtcdClusterSpec) { s.Version = etcd37 },
		},
		"DeletedDown": {
			reason: "the operator that recreated it knows nothing of the upgrade since",
			from:   etcd37, deleted: true, as: func(s *api.EtcdClusterSpec) { s.Version = etcd36 },
		},
		"DeletedTwoDown": {
			reason: "two minors are too many at a time",
			from:   etcd37, deleted: true, as: func(s *api.EtcdClusterSpec) { s.Version = etcd35 }, refused: etcd36,
		},
		"DeletedMidwayBack": {
			reason: "the volumes know more than the spec",
			from:   etcd36, towards: etcd37, deleted: true, as: func(s *api.EtcdClusterSpec) { s.Version = etcd36 },
		},
		"DeletedMidwayDownOn": {
			reason: "etcd remembers the downgrade that it was asked for",
			from:   etcd37, towards: etcd36, deleted: true, as: func(s *api.EtcdClusterSpec) { s.Version = etcd36 },
		},
		"DeletedSmallerOtherwise": {
			reason: "all members are needed to come back, and then two to go",
			size:   5, from: etcd36, deleted: true,
			as: func(s *api.EtcdClusterSpec) {
				s.Replicas, s.Options = new(int32(3)), &api.Options{HeartbeatInterval: new(api.Duration("50ms"))}
			},
		},
		"DeletedLarger": {
			reason: "the volumes of the first start say how many they were",
			from:   etcd36, deleted: true, as: func(s *api.EtcdClusterSpec) { s.Replicas = new(int32(5)) },
		},
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", max(tc.size, 3))
			c.Spec.Version = tc.from
			kept := s.born(c)
			who := identityOf(c)
			if tc.towards != "" {
				s.change(c, func() { c.Spec.Version = tc.towards })
				s.await(c, "mixed", func() bool {
					return slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Version != "" && m.Version != tc.from })
				})
				s.write(c, kept)
			}
			spec := c.Spec.DeepCopy()
			tc.as(spec)
			if tc.deleted {
				s.must(s.Delete(t.Context(), c))
				s.gone(c)
				c = s.cluster("db", 3)
				c.Spec = *spec
				contract.Watch(s, c)
				s.create(c)
			} else {
				s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
				s.await(c, "asleep", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && len(s.pods(c)) == 0 })
				s.change(c, func() { tc.as(&c.Spec); c.Spec.Replicas = new(int32(0)) })
				s.change(c, func() { c.Spec.Replicas = spec.Replicas })
			}
			if tc.refused != "" {
				s.stalled(c, api.ReasonVersionNotAllowed)
				s.whole(c)
				s.write(c, kept)
				s.change(c, func() { c.Spec.Version = tc.refused })
				s.runs(c, tc.refused)
				s.change(c, func() { c.Spec.Version = spec.Version })
			}
			s.runs(c, spec.Version)
			s.sized(c, int(*spec.Replicas))
			now := identityOf(c)
			if now.Cluster != who.Cluster {
				t.Errorf("%s: it came back as the cluster %s, and was %s", tc.reason, now.Cluster, who.Cluster)
			}
			for member, id := range now.Members {
				if was := who.Members[member]; was != "" && was != id {
					t.Errorf("%s: %s came back as %s, and was %s", tc.reason, member, id, was)
				}
			}
			s.write(c, kept)
			s.settled(c, kept)
			if spec.Options != nil {
				for _, pod := range s.pods(c) {
					if !slices.Contains(argsOf(&pod), "--heartbeat-interval=50") {
						t.Errorf("%s: %s runs without the new option: %v", tc.reason, pod.Name, argsOf(&pod))
					}
				}
			}
		})
	}
}
