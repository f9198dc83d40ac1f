//go:build env

package reconcile_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile"
)

// recovery is a walk to a bad value and back. What ran goes on, or serves again within a bound; the
// status says what is wrong and by its name, and no more when that is taken back; the end is a
// cluster that was made so.
type recovery struct {
	bad
	size   int32
	during string // the good change that is under way; empty for none
	midway bool   // it is taken back whatever has come of it by then
}

// under are good changes, by name: what the spec is to be, of a cluster of that size.
var under = map[string]func(size int32) string{
	"Version": func(int32) string { return `{"version":"` + etcd37 + `"}` },
	"Options": func(int32) string { return `{"options":{"snapshotCount":5000}}` },
	"Size": func(size int32) string {
		return fmt.Sprintf(`{"replicas":%d}`, map[int32]int32{1: 3, 3: 5, 5: 3}[size])
	},
}

func (w recovery) String() string {
	how := []string{"recovery", fmt.Sprint(w.size), w.name(), "Alone", "Settled"}
	if w.during != "" {
		how[3] = w.during
	}
	if w.midway {
		how[4] = "Midway"
	}
	return strings.Join(how, "/")
}

// drawn is a number below n that the name of the walk gives: the same in every run.
func (w recovery) drawn(what string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(w.String() + what)) // a hash never fails
	return int(h.Sum32() % uint32(n))
}

// keeps reports whether the good change stays when the bad value is taken back. Otherwise both are.
func (w recovery) keeps() bool { return w.during != "" && w.drawn("keeps", 2) == 0 }

// specs of the walk: before it, and at its end.
func (w recovery) specs(s *stage) (before, end *api.EtcdCluster) {
	before = s.cluster("db", w.size)
	s.merge(before, w.base)
	end = before.DeepCopy()
	s.merge(end, w.back)
	if w.keeps() {
		s.merge(end, under[w.during](w.size))
	}
	return before, end
}

// merge a patch into a spec.
func (s *stage) merge(c *api.EtcdCluster, patch string) {
	s.Helper()
	if patch != "" {
		s.must(json.Unmarshal([]byte(patch), &c.Spec))
	}
}

// patched has the API server merge a patch into the spec.
func (s *stage) patched(c *api.EtcdCluster, patch string, options ...client.PatchOption) error {
	changed := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
	err := s.Patch(s.Context(), changed, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+patch+`}`)), options...)
	if err == nil && len(options) == 0 {
		*c = *changed
	}
	return err
}

// recoveries are all walks with these values.
func recoveries(values []bad) []recovery {
	changes := slices.Sorted(maps.Keys(under))
	var all []recovery
	for _, b := range values {
		for _, size := range []int32{1, 3, 5} {
			beside := recovery{bad: b, size: size}
			if beside.during = changes[beside.drawn("during", len(changes))]; b.newPods || b.base == inMemory && beside.during == "Options" {
				beside.during = "Version"
			}
			beside.midway = beside.drawn("midway", 2) == 0
			all = append(all, recovery{bad: b, size: size}, recovery{bad: b, size: size, midway: true}, beside)
		}
	}
	return all
}

// accepted are the values that the API server takes.
func accepted(t *testing.T) []bad {
	values, err := allBad()
	if err != nil {
		t.Fatal(err)
	}
	var taken []bad
	t.Run("Accepted", func(t *testing.T) {
		s := newStageAlone(t)
		clusters := map[string]*api.EtcdCluster{} // by what their specs are changed to beforehand; there is no operator
		var refused []string
		for _, b := range values {
			c := clusters[b.base]
			if c == nil {
				c = s.cluster(fmt.Sprintf("db-%d", len(clusters)), 3)
				s.merge(c, b.base)
				s.create(c)
				clusters[b.base] = c
			}
			switch err := s.patched(c, b.spec(), client.DryRunAll); {
			case err == nil:
				taken = append(taken, b)
			case apierrors.IsInvalid(err):
				refused = append(refused, b.name())
			default:
				t.Fatalf("%s: %v", b.name(), err)
			}
		}
		t.Logf("%d values are accepted, and %d are not: %v", len(taken), len(refused), refused)
	})
	return taken
}

// key of the end.
func (w recovery) key(s *stage) string {
	_, end := w.specs(s)
	raw, err := json.Marshal(end.Spec)
	s.must(err)
	return string(raw)
}

// made are the ends: clusters that are made so, and left alone.
func madeAs(t *testing.T, walks []recovery) map[string][]string {
	made := map[string][]string{}
	var mu sync.Mutex
	t.Run("Fresh", func(t *testing.T) {
		begun := map[string]bool{}
		asks := &stage{T: t, version: etcd36}
		for _, w := range walks {
			key := w.key(asks)
			if begun[key] {
				continue
			}
			begun[key] = true
			t.Run(fmt.Sprint(len(begun)), func(t *testing.T) {
				s := newStage(t)
				s.operate()
				_, c := w.specs(s)
				s.settled(c, s.born(c))
				mu.Lock()
				defer mu.Unlock()
				made[key] = s.picture(c)
			})
		}
	})
	return made
}

func recoveryTrials(walks []recovery, made map[string][]string) []trial {
	runs := make([]trial, 0, len(walks))
	for _, w := range walks {
		runs = append(runs, trial{w.String(), func(t *testing.T) ending { return w.run(t, made) }})
	}
	return runs
}

// leastRecoveries is how many walks there must be.
const leastRecoveries = 1000

// allRecoveries are all of them, for TestChaos.
func allRecoveries(t *testing.T) []trial {
	if !asked("recovery/") {
		return nil
	}
	walks := recoveries(accepted(t))
	if len(walks) < leastRecoveries {
		t.Errorf("there are %d walks to bad values and back, want %d", len(walks), leastRecoveries)
	}
	walks = slices.DeleteFunc(walks, func(w recovery) bool { return !asked(w.String()) })
	return recoveryTrials(walks, madeAs(t, walks))
}

// TestRecovery sets bad values and takes them back; TestChaos does so with all of them.
func TestRecovery(t *testing.T) {
	if inChaos() {
		t.Skip("TestChaos runs these and more")
	}
	t.Parallel()
	walks := share.List(t, recoveries(accepted(t)), 3, recovery.String)
	figures := newTally(t)
	for _, p := range recoveryTrials(walks, madeAs(t, walks)) {
		figures.plan(t, p)
	}
}

// rested reports whether nothing goes on: all is done, or a person has to act.
func rested(c *api.EtcdCluster) bool {
	return c.Status.ObservedGeneration == c.Generation && is(c, api.ConditionReady, metav1.ConditionTrue) ||
		is(c, api.ConditionStalled, metav1.ConditionTrue) || c.Spec.Suspend && c.Status.ObservedGeneration == c.Generation
}

// How much a walk may cost.
const (
	outage      = 10 * time.Second // of more than one member, none of which was lost
	outageAlone = time.Minute      // of the only member: it is started with the value, put back, and started again
	restWrites  = 4                // in restWatched, once it stalls
	restWatched = 2 * time.Second
	restTries   = 10
	turnsPause  = 10 * time.Millisecond
)

// writesOf are those to the API server that a walk may cost: some for each member that is
// recreated, twice, and the status.
func (w recovery) writesOf() int {
	members := int(w.size)
	if w.during == "Size" || w.path == "replicas" {
		members += 9
	}
	if strings.HasPrefix(w.path, "storage.") { // each is replaced, twice
		members *= 3
	}
	budget := 60 + 40*members
	if w.during != "" {
		budget *= 2
	}
	return budget
}

// wrote are the writes since there were so many, without those that were only tried.
func (s *stage) wrote(from int) []string {
	return slices.DeleteFunc(s.wire.writes()[from:], func(write string) bool { return strings.HasSuffix(write, tried) })
}

func (w recovery) run(t *testing.T, made map[string][]string) ending {
	s := newStageAlone(t)
	s.loaded = true
	s.wire = &wire{}
	var operator *reconcile.Reconciler
	s.operate(func(r *reconcile.Reconciler) { r.MaxChanging, operator = 1, r })
	c, end := w.specs(s)
	kept := s.born(c)
	before, members := *c.Spec.DeepCopy(), identityOf(c)
	outages := contract.WatchOutages(s, c)
	had := len(s.wire.writes())
	if w.during != "" {
		s.must(s.patched(c, under[w.during](w.size)))
		s.await(c, "seen to change", func() bool { return c.Status.ObservedGeneration == c.Generation })
	}
	told := w.foretells(s, c)
	s.must(s.patched(c, w.spec()))
	if w.midway {
		left := w.drawn("writes", 12)
		s.await(c, "on its way", func() bool { left--; return left < 0 || rested(c) })
	} else {
		w.rests(s, c, operator)
		told(s, c)
	}
	spec := before
	if w.keeps() || w.back != "" {
		spec = end.Spec
	}
	s.change(c, func() { c.Spec = spec })
	s.await(c, "as it was", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	writes := s.clients.check()
	s.settled(c, kept)
	if c.Status.FailedChange != nil {
		t.Errorf("the status still tells of %v, which nothing asks for", c.Status.FailedChange)
	}
	s.turnsBack(operator)
	if wrote := s.wrote(had); len(wrote) > w.writesOf() {
		t.Errorf("%d writes to the API server, want %d at most: %s", len(wrote), w.writesOf(), summed(wrote))
	}
	w.served(s, outages)
	if w.during != "Size" && w.path != "replicas" && (!strings.HasPrefix(w.path, "storage.") || w.never) {
		s.same(c, members)
	}
	if diff := cmp.Diff(w.compared(made[w.key(s)]), w.compared(s.picture(c))); diff != "" {
		t.Errorf("the end is not that of a cluster made so: -want +got:\n%s", diff)
	}
	return ending{met: true, writes: writes}
}

// compared is what must be the same in the end: all of it, but claims that go on asking for what
// they never got, and what says the same in other words.
func (w recovery) compared(picture []string) []string {
	lines := make([]string, 0, len(picture))
	for _, line := range picture {
		if w.asks && strings.HasPrefix(line, `["PersistentVolumeClaim"`) {
			continue
		}
		if w.same {
			line = servedWith.ReplaceAllString(line, "")
		}
		// A member may have come with annotations for which a record has no room.
		if w.during == "Size" && (w.path == "additionalMetadata.annotations" || w.path == "pod.metadata.annotations") {
			line = servedWithoutLabels.ReplaceAllString(line, "")
		}
		lines = append(lines, line)
	}
	return lines
}

var servedWithoutLabels = regexp.MustCompile(`,\\"metadata\\":\{\}`)

var servedWith = regexp.MustCompile(`"` + api.AnnotationServed + `":"(\\.|[^"\\])*",`)

// rests waits until the value has shown what it does. Where it stalls the cluster, its name is
// told, no turn is kept and little is written from then on.
func (w recovery) rests(s *stage, c *api.EtcdCluster, operator *reconcile.Reconciler) {
	s.Helper()
	s.await(c, "at rest, and told why if it stalls", func() bool {
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return rested(c) && (stalled == nil || w.told(stalled.Message))
	})
	s.Logf("it comes to %s", contract.Describe(c))
	if w.never && !is(c, api.ConditionStalled, metav1.ConditionTrue) {
		s.Errorf("nothing is wrong, with a value that no member can run with: %s", contract.Describe(c))
	}
	s.turnsBack(operator)
	if !is(c, api.ConditionStalled, metav1.ConditionTrue) {
		return
	}
	var wrote []string
	for range restTries { // what was under way may still come to its end: members that go, a Pod that is put back
		had := len(s.wire.writes())
		<-time.After(restWatched) // nothing tells that nothing is written
		if wrote = s.wrote(had); len(wrote) <= restWrites {
			return
		}
	}
	s.Errorf("%d writes within %s, %d times over, while it stalls, want %d at most: %s", len(wrote), restWatched, restTries, restWrites, summed(wrote))
}

// foretells asks a preview what the value does, while nothing goes on. The function that it returns
// judges that when it is done.
func (w recovery) foretells(s *stage, c *api.EtcdCluster) func(*stage, *api.EtcdCluster) {
	s.Helper()
	if w.midway || w.during != "" {
		return func(*stage, *api.EtcdCluster) {}
	}
	asked := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
	s.must(s.Patch(s.Context(), asked, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+w.spec()+`}`)), client.DryRunAll))
	outlook, err := reconcile.Preview(s.Context(), s.WithWatch, asked)
	s.must(err)
	told := effects(outlook)
	pods, restarts := s.lives(c)
	asks := s.asked(c)
	return func(s *stage, c *api.EtcdCluster) {
		s.Helper()
		if !is(c, api.ConditionReady, metav1.ConditionTrue) { // what could not be done is told by then
			return
		}
		s.eventually("the Pods of members that were removed are gone", func() bool {
			return !slices.ContainsFunc(s.pods(c), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		})
		now, again := s.lives(c)
		s.resized(outlook, pods, now, asks, s.asked(c))
		for member, uid := range now {
			did := reconcile.Effect("")
			switch {
			case pods[member] == "":
				continue
			case uid != pods[member]:
				did = reconcile.EffectRecreated
			case again[member] != restarts[member]:
				did = reconcile.EffectRestarted
			}
			resized := told[member] == reconcile.EffectResized && did != reconcile.EffectRestarted // recreated where its node has less
			if did != told[member] && !resized {
				s.Errorf("%s was to be %q, and was %q: %v", member, told[member], did, outlook)
			}
		}
	}
}

// asked is how much the claims of a cluster ask for, by name.
func (s *stage) asked(c *api.EtcdCluster) map[string]string {
	s.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	s.must(s.List(s.Context(), claims, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCluster: c.Name}))
	asks := map[string]string{}
	for _, claim := range claims.Items {
		asks[claim.Name] = claim.Spec.Resources.Requests.Storage().String()
	}
	return asks
}

// resized fails where other members have come or gone, or other volumes have grown, than an outlook
// has told of. A cluster that sleeps has no Pods, and loses no member for that.
func (s *stage) resized(o reconcile.Outlook, before, now map[string]types.UID, asked, asks map[string]string) {
	s.Helper()
	var told, done []string
	for _, change := range o.Objects {
		comes := change.Effect == reconcile.EffectCreated && change.Kind == "Pod"
		if comes || change.Effect == reconcile.EffectRemoved || change.Effect == reconcile.EffectGrown {
			told = append(told, fmt.Sprint(change.Name, change.Effect))
		}
	}
	for name := range before {
		if now[name] == "" && len(now) > 0 {
			done = append(done, fmt.Sprint(name, reconcile.EffectRemoved))
		}
	}
	for name := range now {
		if before[name] == "" {
			done = append(done, fmt.Sprint(name, reconcile.EffectCreated))
		}
	}
	for name, size := range asks {
		if asked[name] != "" && asked[name] != size {
			done = append(done, fmt.Sprint(name, reconcile.EffectGrown))
		}
	}
	slices.Sort(told)
	slices.Sort(done)
	if diff := cmp.Diff(told, done); diff != "" {
		s.Errorf("-told +done:\n%s", diff)
	}
}

// turnsBack waits until the operator has given back every turn, a moment after it has written the
// status.
func (s *stage) turnsBack(operator *reconcile.Reconciler) {
	s.Helper()
	late := time.After(patience)
	for have, _ := operator.Turns(); len(have) > 0; have, _ = operator.Turns() {
		select {
		case <-late:
			s.Fatalf("the turns of %v were not given back", have)
		case <-time.After(turnsPause):
		}
	}
}

// served fails where the cluster was away for longer than it may be.
func (w recovery) served(s *stage, outages *contract.Outages) {
	s.Helper()
	most := outage
	if w.size == 1 {
		most = outageAlone
	}
	most += w.elects
	longest, told := outages.Take()
	if !w.away && longest > most {
		s.Errorf("away for %s, want %s at most: %s", longest, most, strings.Join(told, "\n"))
	}
}

// summed are writes, each once with how often.
func summed(writes []string) string {
	times := map[string]int{}
	for _, write := range writes {
		times[write]++
	}
	var lines []string
	for _, write := range slices.Sorted(maps.Keys(times)) {
		lines = append(lines, fmt.Sprintf("%d %s", times[write], write))
	}
	return strings.Join(lines, ", ")
}
