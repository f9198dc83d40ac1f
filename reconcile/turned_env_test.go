//go:build env

package reconcile_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// turned is a change of the version, at an effect of which the spec asks for yet another one: back,
// on, or elsewhere.
type turned struct {
	from, to, then string
	effect         string
	late           bool // the effect is there when the spec changes; otherwise it comes after that, decided before
}

func (p turned) String() string {
	when := map[bool]string{false: "Before", true: "After"}[p.late]
	return fmt.Sprintf("turn/%s-%s-%s/%s/%s", p.from, p.to, p.then, p.effect, when)
}

// turnings are the changes, and where they may turn to.
var turnings = []turned{
	{from: etcd35, to: etcd37, then: etcd35},
	{from: etcd35, to: etcd37, then: etcd36},
	{from: etcd37, to: etcd36, then: etcd37},
	{from: etcd37, to: etcd36, then: etcd35},
}

// effects of a change that is not turned, without those that only report.
func (p turned) effects(s *stage) []string {
	f := newFault("", "")
	s.operate(f.between)
	reversion(p.from, p.to)(s, f)
	return slices.DeleteFunc(f.effects(), func(effect string) bool { return strings.HasPrefix(effect, "status.") })
}

// run fails unless the end is that of a cluster that was made with the last version, with all that
// was written on the way.
func (p turned) run(t *testing.T, want []string) ending {
	s := newStageAlone(t)
	s.loaded = true
	f := newFault("", "")
	c := s.cluster("db", 3)
	c.Spec.Version = p.from
	var met atomic.Bool
	turn := sync.OnceFunc(func() {
		met.Store(true)
		was := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
		is := was.DeepCopy()
		is.Spec.Version = p.then
		if err := s.Patch(s.Context(), is, client.MergeFrom(was)); err != nil {
			t.Errorf("turn: %v", err)
		}
	})
	var mu sync.Mutex
	times := map[string]int{}
	f.around = func(what string, effect func() error) error {
		mu.Lock()
		kind := repeatable(what)
		mine := fmt.Sprintf("%s#%d", kind, times[kind]+1) == p.effect
		mu.Unlock()
		if mine && !p.late {
			turn()
		}
		err := effect()
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			times[kind]++
		}
		if mine && p.late && err == nil {
			turn()
		}
		return err
	}
	s.operate(f.between)
	kept := s.born(c)
	who := identityOf(c)
	f.arm()
	s.change(c, func() { c.Spec.Version = p.to })
	s.arrives(c, p.to, func() bool { return c.Spec.Version != p.to })
	s.write(c, kept)
	last := c.Spec.Version // p.to where this run got by without the effect
	s.arrives(c, last, func() bool { return false })
	s.same(c, who)
	writes := s.clients.check()
	s.settled(c, kept)
	if diff := cmp.Diff(want, s.picture(c)); met.Load() && diff != "" {
		t.Errorf("the end is not that of a cluster made with %s: -want +got:\n%s", last, diff)
	}
	if !met.Load() {
		t.Logf("this run got by without it, so there was nothing to turn at")
	}
	return ending{met: met.Load(), writes: writes}
}

var firstGo = regexp.MustCompile(`set spec.version to ([0-9.]+) first`)

// arrives waits until the cluster runs the version, or something else is so. Where there is no way
// it goes the one that it is told.
func (s *stage) arrives(c *api.EtcdCluster, version string, or func() bool) {
	s.Helper()
	arrived := func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == version }
	var told []string
	s.await(c, "ready with "+version+", or told the way", func() bool {
		if arrived() || or() {
			return true
		}
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		if stalled != nil && stalled.ObservedGeneration == c.Generation {
			told = firstGo.FindStringSubmatch(stalled.Message)
		}
		return told != nil
	})
	if told == nil {
		return
	}
	s.change(c, func() { c.Spec.Version = told[1] })
	s.runs(c, told[1])
	s.change(c, func() { c.Spec.Version = version })
	s.runs(c, version)
}

// untouched is what comes of a cluster of that size that is made with a spec and left alone.
func untouched(t *testing.T, size int32, spec func(*api.EtcdClusterSpec)) []string {
	s := newStageAlone(t)
	s.operate()
	c := s.cluster("db", size)
	spec(&c.Spec)
	s.settled(c, s.born(c))
	return s.picture(c)
}

// turnedRuns are the plans that the effects of these changes give; each effect turns before it is
// there, or after.
func turnedRuns(t *testing.T, turnings []turned) (plans []turned, ends map[string][]string) {
	ends = map[string][]string{}
	effects := map[string][]string{}
	var mu sync.Mutex
	t.Run("Reference", func(t *testing.T) {
		for _, p := range turnings {
			change := p.from + "-" + p.to
			if mu.Lock(); effects[change] == nil {
				effects[change] = []string{}
				t.Run(change, func(t *testing.T) {
					t.Parallel()
					made := p.effects(newStageAlone(t))
					mu.Lock()
					defer mu.Unlock()
					effects[change] = made
					t.Logf("%d effects: %v", len(made), made)
				})
			}
			if ends[p.then] == nil {
				ends[p.then] = []string{}
				t.Run(p.then, func(t *testing.T) {
					t.Parallel()
					end := untouched(t, 3, func(s *api.EtcdClusterSpec) { s.Version = p.then })
					mu.Lock()
					defer mu.Unlock()
					ends[p.then] = end
				})
			}
			mu.Unlock()
		}
	})
	for _, p := range turnings {
		for _, effect := range effects[p.from+"-"+p.to] {
			for _, late := range []bool{false, true} {
				p.effect, p.late = effect, late
				plans = append(plans, p)
			}
		}
	}
	return plans, ends
}

// turnedTrials are all of them, for TestChaos.
func turnedTrials(t *testing.T) []trial {
	if !asked("turn/") {
		return nil
	}
	plans, ends := turnedRuns(t, turnings)
	var runs []trial
	for _, p := range plans {
		if asked(p.String()) {
			runs = append(runs, trial{p.String(), func(t *testing.T) ending { return p.run(t, ends[p.then]) }})
		}
	}
	return runs
}

// TestTurned changes the version once more while a change of it is under way, at effects of that
// change; make chaos does so at each of them.
func TestTurned(t *testing.T) {
	if inChaos() {
		t.Skip("TestChaos runs these and more")
	}
	t.Parallel()
	some := share.List(t, turnings, 2, turned.String)
	plans, ends := turnedRuns(t, some)
	figures := newTally(t)
	for _, p := range share.List(t, plans, 3, turned.String) {
		figures.plan(t, trial{p.String(), func(t *testing.T) ending { return p.run(t, ends[p.then]) }})
	}
}

// TestAllInOne: version, size and resources change in one apply.
func TestAllInOne(t *testing.T) {
	t.Parallel()
	small := api.EtcdClusterSpec{Version: etcd35, Replicas: new(int32(3))}
	large := api.EtcdClusterSpec{Version: etcd36, Replicas: new(int32(5)), Resources: &api.Resources{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")},
	}}
	cases := map[string]struct {
		reason   string
		from, to api.EtcdClusterSpec
		cpu      string
	}{
		"Up":   {reason: "a newer minor, two more members and more cpu", from: small, to: large, cpu: "20m"},
		"Down": {reason: "the minor before, two members fewer and no request of cpu", from: large, to: small, cpu: "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			asks := func(spec *api.EtcdClusterSpec, of api.EtcdClusterSpec) {
				spec.Version, spec.Replicas, spec.Resources = of.Version, of.Replicas, of.Resources
			}
			c := s.cluster("db", *tc.from.Replicas)
			asks(&c.Spec, tc.from)
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			load := s.load(c)
			kept := data{}
			s.write(c, kept)
			s.change(c, func() { asks(&c.Spec, tc.to) })
			s.runs(c, tc.to.Version)
			s.write(c, kept)
			for _, pod := range s.pods(c) {
				if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); got != tc.cpu {
					t.Errorf("%s: %s requests %s of cpu, want %s", tc.reason, pod.Name, got, tc.cpu)
				}
			}
			load.check()
			s.settled(c, kept)
			want := untouched(t, *tc.to.Replicas, func(s *api.EtcdClusterSpec) { asks(s, tc.to) })
			if diff := cmp.Diff(want, s.picture(c)); diff != "" {
				t.Errorf("%s: the end is not that of a cluster made so: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
