package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// hashing is an etcd that tells its hash, or why it does not.
type hashing struct {
	asked
	hash func(ctx context.Context, revision int64) (membership.Hash, error)
}

func (h hashing) Hash(ctx context.Context, revision int64) (membership.Hash, error) {
	return h.hash(ctx, revision)
}

func TestDue(t *testing.T) {
	now := time.Now()
	done := func(about string, whole bool, ago, took time.Duration) comparison {
		return comparison{about: about, whole: whole, ended: now.Add(-ago), took: took}
	}
	different := done("before", true, time.Second, time.Second)
	different.differ = true
	type args struct {
		of     comparison
		urgent bool
	}
	cases := map[string]struct {
		reason string
		args   args
		want   bool
	}{
		"First":             {reason: "nothing is known", want: true},
		"Fresh":             {reason: "it is known", args: args{of: done("now", true, 4*time.Minute, time.Millisecond), urgent: true}},
		"AtRest":            {reason: "from time to time", args: args{of: done("now", true, 5*time.Minute, time.Millisecond)}, want: true},
		"AtRestLarge":       {reason: "one that takes long is made more seldom", args: args{of: done("now", true, 15*time.Minute, 10*time.Second)}},
		"AtRestLargeLate":   {reason: "a hundredth of the time", args: args{of: done("now", true, 17*time.Minute, 10*time.Second)}, want: true},
		"Started":           {reason: "a small one follows each start", args: args{of: done("before", true, time.Second, 10*time.Millisecond)}, want: true},
		"StartedLarge":      {reason: "a member that starts again and again does not cost more", args: args{of: done("before", true, time.Minute, 10*time.Second)}},
		"Urgent":            {reason: "a step waits for it", args: args{of: done("before", true, 0, 10*time.Second), urgent: true}, want: true},
		"Differed":          {reason: "members that differed before may differ still", args: args{of: different}, want: true},
		"UrgentInPart":      {reason: "one that did not answer may answer now", args: args{of: done("now", false, time.Second, time.Millisecond), urgent: true}, want: true},
		"UrgentInPartAgain": {reason: "but not at every look", args: args{of: done("now", false, 999*time.Millisecond, time.Millisecond), urgent: true}},
		"UrgentInPartLarge": {reason: "nor all the time", args: args{of: done("now", false, 9*time.Second, 10*time.Second), urgent: true}},
		"InPart":            {reason: "no step waits for it", args: args{of: done("now", false, time.Minute, time.Second)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.args.of.due("now", tc.args.urgent, now)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompareData(t *testing.T) {
	type result struct {
		Hashes map[string]membership.Hash
		Whole  bool
		Asked  []string
	}
	hash := func(revision, compacted int64, sum uint32) membership.Hash {
		return membership.Hash{Revision: revision, Compacted: compacted, Sum: sum}
	}
	at := func(compacted int64) func(string, int, int64) (membership.Hash, error) {
		return func(_ string, _ int, revision int64) (membership.Hash, error) {
			return hash(max(revision, 9), compacted, 1), nil
		}
	}
	cases := map[string]struct {
		reason string
		// answer of a member to the n-th question that it is asked
		answer func(name string, n int, revision int64) (membership.Hash, error)
		want   result
	}{
		"Equal": {
			reason: "at the lowest revision, which all of them have, and the leader last",
			answer: func(_ string, _ int, revision int64) (membership.Hash, error) { return hash(revision, 2, 1), nil },
			want: result{
				Hashes: map[string]membership.Hash{"a": hash(7, 2, 1), "b": hash(7, 2, 1), "c": hash(7, 2, 1)}, Whole: true,
				Asked: []string{"a 7", "b 7", "c 7"},
			},
		},
		"Different": {
			reason: "which is a finding, and not tried again",
			answer: func(name string, _ int, revision int64) (membership.Hash, error) {
				return hash(revision, 2, uint32(name[0])), nil
			},
			want: result{
				Hashes: map[string]membership.Hash{"a": hash(7, 2, 'a'), "b": hash(7, 2, 'b'), "c": hash(7, 2, 'c')}, Whole: true,
				Asked: []string{"a 7", "b 7", "c 7"},
			},
		},
		"Silent": {
			reason: "what the others say can be compared",
			answer: func(name string, _ int, revision int64) (membership.Hash, error) {
				if name == "b" {
					return membership.Hash{}, errors.New("no answer")
				}
				return hash(revision, 2, 1), nil
			},
			want: result{Hashes: map[string]membership.Hash{"a": hash(7, 2, 1), "c": hash(7, 2, 1)}, Asked: []string{"a 7", "b 7", "c 7"}},
		},
		"CompactedInBetween": {
			reason: "what is left after different compactions cannot be compared: they are asked again",
			answer: func(name string, n int, revision int64) (membership.Hash, error) {
				if n == 0 && name == "c" {
					return hash(revision, 5, 3), nil
				}
				return hash(revision, 2+3*int64(n), 1), nil
			},
			want: result{
				Hashes: map[string]membership.Hash{"a": hash(9, 5, 1), "b": hash(9, 5, 1), "c": hash(9, 5, 1)}, Whole: true,
				Asked: []string{"a 7", "b 7", "c 7", "a 9", "b 9", "c 9"},
			},
		},
		"CompactedAsFarAsThat": {
			reason: "each one tells of its present data then, which is the same where nothing is written",
			answer: func(name string, n int, revision int64) (membership.Hash, error) {
				if revision > 0 && name == "b" {
					return membership.Hash{}, fmt.Errorf("b: %w", membership.ErrCompacted)
				}
				return at(7)(name, n, revision)
			},
			want: result{
				Hashes: map[string]membership.Hash{"a": hash(9, 7, 1), "b": hash(9, 7, 1), "c": hash(9, 7, 1)}, Whole: true,
				Asked: []string{"a 7", "b 7", "a 0", "b 0", "c 0"},
			},
		},
		"WrittenAllTheTime": {
			reason: "it is given up after a few tries, and nothing is known",
			answer: func(name string, _ int, revision int64) (membership.Hash, error) {
				return hash(revision+int64(name[0]), 7, 1), nil
			},
			want: result{Asked: []string{"a 7", "b 7", "c 7", "a 9", "b 9", "c 9", "a 9", "b 9", "c 9", "a 9", "b 9", "c 9"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got result
			times := map[string]int{}
			r := &Reconciler{Dial: func(host string, _ int) (membership.Client, error) {
				present := etcd{endpoint: membership.Endpoint{ClusterID: 0xc0, MemberID: 1, Revision: 9}}
				return hashing{asked{etcd: present}, func(_ context.Context, revision int64) (membership.Hash, error) {
					got.Asked = append(got.Asked, fmt.Sprint(host, " ", revision))
					times[host]++
					return tc.answer(host, times[host]-1, revision)
				}}, nil
			}}
			at := func(name string) *corev1.Pod {
				pod := newPod(name)
				pod.Status.PodIP = name
				return pod
			}
			got.Hashes, got.Whole = r.compareData(t.Context(), newCluster(), []voter{{"a", at("a"), 8, false}, {"b", at("b"), 7, false}, {"c", at("c"), 9, true}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// serves are the facts of healthy, with Pods in which containers run.
func serves3() observed {
	seen := healthy()
	for name, pod := range seen.pods {
		pod.Status.PodIP = name
		pod.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{ContainerID: "first of " + name, State: isRunning, Ready: true})
	}
	return seen
}

// TestComparedFacts holds what makes a comparison a fact no more.
func TestComparedFacts(t *testing.T) {
	pod := func(seen *observed) *corev1.Pod { return seen.pods["db-2"] }
	cases := map[string]struct {
		reason string
		change func(c *api.EtcdCluster, seen *observed)
		want   bool // it is one still
	}{
		"Same":      {reason: "nothing has changed", change: func(*api.EtcdCluster, *observed) {}, want: true},
		"Leader":    {reason: "which one leads does not matter", change: func(_ *api.EtcdCluster, seen *observed) { lead(seen, 0xa2) }, want: true},
		"Restarted": {reason: "another process reads the disk", change: func(_ *api.EtcdCluster, seen *observed) { containerStatus(pod(seen)).ContainerID = "second" }},
		"Pod":       {reason: "another Pod runs", change: func(_ *api.EtcdCluster, seen *observed) { pod(seen).UID = "another" }},
		"Silent":    {reason: "it may be another one when it answers again", change: func(_ *api.EtcdCluster, seen *observed) { down(seen, 2) }},
		"Member":    {reason: "another one votes", change: func(_ *api.EtcdCluster, seen *observed) { seen.Members[2].ID, seen.Instances[2].ID = 0xaf, 0xaf }},
		"Alarm": {
			reason: "etcd has found a difference since",
			change: func(_ *api.EtcdCluster, seen *observed) {
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmCorrupt, Member: 0xa2}}
			},
		},
		"NoSpace": {
			reason: "that says nothing about data",
			change: func(_ *api.EtcdCluster, seen *observed) {
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmNoSpace, Member: 0xa2}}
			},
			want: true,
		},
		"TooMany": {reason: "those that stay may be needed to tell", change: func(c *api.EtcdCluster, _ *observed) { c.Spec.Replicas = new(int32(1)) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := true
			r := &Reconciler{Dial: func(string, int) (membership.Client, error) {
				if !answers {
					return nil, errors.New("it is not asked")
				}
				return asked{}, nil
			}}
			c, seen := newCluster(), serves3()
			r.compared(t.Context(), c, &seen)
			if !seen.Right(seen.Instances[2]) {
				t.Fatalf("they are not found to be equal: %+v", seen.Instances)
			}
			answers, seen = false, serves3()
			tc.change(c, &seen)
			r.compared(t.Context(), c, &seen)
			if diff := cmp.Diff(tc.want, seen.Instances[0].Hash != membership.Hash{}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func lead(seen *observed, id membership.ID) {
	for n := range seen.Instances {
		seen.Instances[n].Endpoint.Leader = id
	}
}

// TestComparedLate: a pass does not wait for a comparison that takes long, and its end wakes the
// cluster. One that is about members that there are no more is ended, and says nothing.
func TestComparedLate(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*observed)
		panics bool
		want   bool // it is a fact in the end
	}{
		"Late":    {reason: "it is known when it is there", change: func(*observed) {}, want: true},
		"Ended":   {reason: "a member was started again meanwhile", change: func(seen *observed) { containerStatus(seen.pods["db-0"]).ContainerID = "second" }},
		"Panicks": {reason: "a fault is the end of one comparison", change: func(*observed) {}, panics: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			woken, answer := make(chan types.NamespacedName, 1), make(chan struct{})
			var once sync.Once
			r := &Reconciler{Dial: func(string, int) (membership.Client, error) {
				return hashing{hash: func(ctx context.Context, _ int64) (membership.Hash, error) {
					select {
					case <-answer:
					case <-ctx.Done():
						return membership.Hash{}, ctx.Err()
					}
					if tc.panics {
						once.Do(func() { panic("a fault") })
					}
					return membership.Hash{Revision: 1}, nil
				}}, nil
			}}
			r.comparing.wake = func(key types.NamespacedName) { woken <- key }
			c, seen := newCluster(), serves3()
			r.compared(t.Context(), c, &seen)
			if seen.Instances[0].Hash != (membership.Hash{}) {
				t.Fatal("it is known before a member has answered")
			}
			tc.change(&seen)
			r.compared(t.Context(), c, &seen)
			close(answer)
			if key := <-woken; key != (types.NamespacedName{Namespace: "ns", Name: "db"}) {
				t.Errorf("%s is woken", key)
			}
			r.comparing.mu.Lock()
			k := r.comparing.cluster[types.NamespacedName{Namespace: "ns", Name: "db"}]
			got := k.whole && k.about == subject(c, &seen)
			r.comparing.mu.Unlock()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChecksAtStart: etcd's check at the start is left out where it has ended a member, until that
// is known to be right.
func TestChecksAtStart(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: `{"level":"fatal","msg":"discovery failed","error":"a0 found data inconsistency with peers"}`}}
	with := func(on bool) func(*observed) {
		return func(seen *observed) {
			seen.pods["db-0"].Annotations[api.AnnotationCheckAtStart] = map[bool]string{true: checkedAtStart, false: uncheckedAtStart}[on]
		}
	}
	status := func(s corev1.ContainerStatus) func(*observed) {
		return func(seen *observed) { seen.pods["db-0"].Status.ContainerStatuses = etcdStatus(s) }
	}
	equal := func(sums ...uint32) func(*observed) {
		return func(seen *observed) {
			for n, sum := range sums {
				seen.Instances[n].Hash = membership.Hash{Revision: 7, Sum: sum}
			}
		}
	}
	noQuorum := func(seen *observed) { seen.Reach, seen.Members = membership.ReachSome, nil }
	cases := map[string]struct {
		reason string
		seen   []func(*observed)
		want   bool
	}{
		"On":               {reason: "a Pod that has it keeps it", seen: []func(*observed){with(true)}, want: true},
		"OnWithoutQuorum":  {reason: "and is not written to for every hiccup", seen: []func(*observed){with(true), noQuorum}, want: true},
		"Ended":            {reason: "it would be ended again, and never be compared", seen: []func(*observed){with(true), status(corev1.ContainerStatus{State: ended})}},
		"EndedNoQuorum":    {reason: "all the more without it", seen: []func(*observed){with(true), status(corev1.ContainerStatus{State: ended}), noQuorum}},
		"BackOff":          {reason: "while the kubelet waits", seen: []func(*observed){with(true), status(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended})}},
		"Started":          {reason: "it is not known yet whether it is right", seen: []func(*observed){with(false), status(corev1.ContainerStatus{State: isRunning, LastTerminationState: ended})}},
		"StartedRight":     {reason: "now it is", seen: []func(*observed){with(false), status(corev1.ContainerStatus{State: isRunning, LastTerminationState: ended}), equal(1, 1, 1)}, want: true},
		"StartedWrong":     {reason: "it is not", seen: []func(*observed){with(false), status(corev1.ContainerStatus{State: isRunning, LastTerminationState: ended}), equal(2, 1, 1)}},
		"RightBesideWrong": {reason: "it would be ended by the one that is wrong", seen: []func(*observed){with(false), status(corev1.ContainerStatus{State: isRunning, LastTerminationState: ended}), equal(1, 2, 1)}},
		"Off":              {reason: "it was started without a quorum, and now there is one", seen: []func(*observed){with(false), status(corev1.ContainerStatus{State: isRunning})}, want: true},
		"OffWithoutQuorum": {reason: "it would wait for those that do not answer", seen: []func(*observed){with(false), noQuorum}},
		"New":              {reason: "a new Pod starts with it", seen: []func(*observed){func(seen *observed) { delete(seen.pods, "db-0") }}, want: true},
		"NewBesideWrong":   {reason: "and without it where one is wrong", seen: []func(*observed){func(seen *observed) { delete(seen.pods, "db-0") }, equal(0, 2, 1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			with(true)(&seen)
			for _, change := range tc.seen {
				change(&seen)
			}
			if diff := cmp.Diff(tc.want, member(newCluster(), seen, "db-0").InitialCorruptCheck); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
