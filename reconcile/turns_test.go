package reconcile

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

func turnOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// TestTurns: so many clusters change at a time, in the order in which they asked, each until it has
// come to rest.
func TestTurns(t *testing.T) {
	t.Parallel()
	var turns turns
	var woken []string
	now := time.Now()
	turns.wake = func(key types.NamespacedName) { woken = append(woken, key.Name) }
	enters := func(when, name string, limit int, want bool) {
		t.Helper()
		c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		err := turns.enter(c, limit)
		if queued := (queuedError{}); (err == nil) != want || err != nil && !errors.As(err, &queued) {
			t.Errorf("%s: %s enters is %v, want %t", when, name, err, want)
		}
	}
	leaves := func(when, name string, step membership.Step, wakes ...string) {
		t.Helper()
		woken = nil
		turns.leave(turnOf(name), 2, step, now)
		if !slices.Equal(woken, wakes) {
			t.Errorf("%s: %s leaves with %s, and %v are woken, want %v", when, name, step.Action, woken, wakes)
		}
	}
	waits := membership.Step{Action: membership.Wait, Reason: membership.Changing}
	queued := membership.Step{Action: membership.Wait, Reason: membership.Reason(api.ReasonQueued)}
	rests := membership.Step{Action: membership.None, Reason: membership.Healthy}
	stops := membership.Step{Action: membership.Stall, Reason: membership.ChangeFailed}

	enters("the first", "a", 2, true)
	enters("the second", "b", 2, true)
	for _, name := range []string{"c", "d", "e", "f"} {
		enters("one too many", name, 2, false)
		leaves("it is told to wait", name, queued)
	}
	enters("a cluster that has a turn keeps it", "a", 2, true)
	leaves("a is not done", "a", waits)
	leaves("a is done", "a", rests, "c")
	enters("others asked before", "d", 2, false)
	enters("it asked first", "c", 2, true)
	leaves("it wants something else first", "d", membership.Step{Action: membership.Wait, Reason: membership.MemberDown})
	leaves("b waits for a person", "b", stops, "e")
	leaves("it wants nothing any more, and holds up no other", "e", rests, "f")
	enters("one that asks no more is passed", "f", 2, true)
	enters("it comes back", "d", 2, false)
	enters("a new one", "h", 2, false)
	leaves("it has kept its place", "c", rests, "d")
	leaves("it had none", "a", rests)
	enters("its place is behind", "h", 2, false)
	enters("there is one", "d", 2, true)
	leaves("it wants nothing any more", "h", rests)
	enters("without a limit", "g", 0, true)
	snapshot := membership.Step{Action: membership.Wait, Reason: membership.BackingUp}
	leaves("it takes a snapshot first, in its turn", "g", snapshot)
	enters("that is one of two", "i", 2, false)
	now = now.Add(snapshotTurn - time.Second)
	leaves("it takes its time", "g", snapshot)
	leaves("what keeps a look from being taken says nothing", "g", membership.Step{})
	now = now.Add(time.Second)
	leaves("that may take hours, and no member is away", "g", snapshot)
	leaves("d has taken one, and changes", "d", membership.Step{Action: membership.Wait, Reason: membership.Changing})
	leaves("i wants nothing any more", "i", rests)
	leaves("it begins with a new one", "d", snapshot)
	if diff := cmp.Diff([]string{"d", "f"}, taken(&turns)); diff != "" || len(turns.waiting) > 0 {
		t.Errorf("%v wait; which have a turn: -want +got:\n%s", turns.waiting, diff)
	}
}

// TestTurnsIdle: a cluster that waits for ever does not keep its turn for ever.
func TestTurnsIdle(t *testing.T) {
	t.Parallel()
	update := func(name string) membership.Step {
		return membership.Step{Action: membership.Update, Members: []string{name}, Reason: membership.Changing}
	}
	waits := membership.Step{Action: membership.Wait, Reason: membership.Changing, Message: "waiting for its volume to grow"}
	other := membership.Step{Action: membership.Wait, Reason: membership.MemberDown, Message: "waiting for its node"}
	type pass struct {
		after time.Duration // the one before it
		step  membership.Step
	}
	cases := map[string]struct {
		reason string
		passes []pass
		keeps  bool
	}{
		"Works":   {reason: "each member takes its time", passes: []pass{{0, update("a-0")}, {10 * time.Minute, update("a-1")}, {10 * time.Minute, update("a-2")}}, keeps: true},
		"Waits":   {reason: "it may yet come", passes: []pass{{0, update("a-0")}, {idleTurn - time.Second, waits}}, keeps: true},
		"Idles":   {reason: "others wait behind it", passes: []pass{{0, update("a-0")}, {time.Minute, waits}, {idleTurn - time.Minute, waits}}},
		"Changes": {reason: "to wait for something else is nothing new", passes: []pass{{0, update("a-0")}, {idleTurn / 2, waits}, {idleTurn / 2, other}}},
		"Again":   {reason: "nor is the very same step", passes: []pass{{0, update("a-0")}, {idleTurn / 2, update("a-0")}, {idleTurn / 2, update("a-0")}}},
		"Fails":   {reason: "nor a pass that came to no step", passes: []pass{{0, update("a-0")}, {idleTurn / 2, membership.Step{}}, {idleTurn / 2, membership.Step{}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns turns
			now := time.Now()
			enter := func(name string) bool {
				return turns.enter(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}, 1) == nil
			}
			enter("a")
			enter("b") // waits behind it
			for _, p := range tc.passes {
				now = now.Add(p.after)
				turns.leave(turnOf("a"), 1, p.step, now)
			}
			if diff := cmp.Diff(tc.keeps, !enter("b")); diff != "" {
				t.Errorf("%s: whether it keeps its turn: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.keeps, enter("a")); diff != "" {
				t.Errorf("%s: whether it changes on: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func taken(t *turns) []string {
	var names []string
	for _, key := range slices.SortedFunc(maps.Keys(t.taken), func(a, b types.NamespacedName) int { return slices.Compare([]string{a.Name}, []string{b.Name}) }) {
		names = append(names, key.Name)
	}
	return names
}

// TestTurnsFair: in whatever order clusters ask, have something else to do and come to rest, a turn
// is given to none while one that asked before it, and still asks, would get none; and is refused
// to none while there is one for it.
func TestTurnsFair(t *testing.T) {
	t.Parallel()
	given, refused := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := 1 + random.IntN(4)
		var turns turns
		var order []string // of those that wait, by when they asked first
		asks, has := map[string]bool{}, map[string]bool{}
		for range 300 {
			name := string(rune('a' + random.IntN(8)))
			step := membership.Step{Action: membership.Wait, Reason: membership.Changing} // it is not done
			switch random.IntN(4) {
			case 0: // nothing is left to do
				step = membership.Step{Action: membership.None, Reason: membership.Healthy}
				order = slices.DeleteFunc(order, func(waits string) bool { return waits == name })
				delete(has, name)
				delete(asks, name)
			case 1: // something else is to do first
				delete(asks, name)
			default:
				if has[name] {
					break
				}
				if !slices.Contains(order, name) {
					order = append(order, name)
				}
				asks[name] = true
				earlier := 0
				for _, other := range order[:slices.Index(order, name)] {
					if asks[other] {
						earlier++
					}
				}
				err := turns.enter(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}, limit)
				if got, want := err == nil, len(has)+earlier < limit; got != want {
					t.Fatalf("seed %d: %s gets a turn is %t, want %t: %v have one of %d, and %d of %v asked before", seed, name, got, want, has, limit, earlier, order)
				}
				if step.Reason = membership.Reason(api.ReasonQueued); err == nil {
					step.Reason, has[name], given = membership.Changing, true, given+1
					order = slices.DeleteFunc(order, func(waits string) bool { return waits == name })
				} else {
					refused++
				}
			}
			turns.leave(turnOf(name), limit, step, time.Now())
		}
	}
	if given < 1000 || refused < 1000 {
		t.Errorf("void: %d turns were given, and %d refused", given, refused)
	}
}

// TestTurnsShared: a free turn goes to the namespace that has the fewest. One that changes a
// hundred clusters by one commit does not keep the single cluster of another waiting behind all of
// them.
func TestTurnsShared(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		limit  int
		have   []string // that change, as namespace/name
		wait   []string // in the order in which they ask
		want   []string // that have the next turns
	}{
		"Alone":  {reason: "one namespace has all turns where no other asks", limit: 3, wait: []string{"a/1", "a/2", "a/3", "a/4"}, want: []string{"a/1", "a/2", "a/3"}},
		"Behind": {reason: "the namespace without a turn is next", limit: 3, have: []string{"a/1", "a/2"}, wait: []string{"a/3", "a/4", "b/1"}, want: []string{"b/1"}},
		"Both":   {reason: "each in its turn", limit: 4, wait: []string{"a/1", "a/2", "a/3", "b/1", "b/2"}, want: []string{"a/1", "b/1", "a/2", "b/2"}},
		"Full":   {reason: "no turn is taken away", limit: 2, have: []string{"a/1", "a/2"}, wait: []string{"b/1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := func(name string) types.NamespacedName {
				namespace, name, _ := strings.Cut(name, "/")
				return types.NamespacedName{Namespace: namespace, Name: name}
			}
			turns := turns{taken: map[types.NamespacedName]bool{}}
			for _, name := range tc.have {
				turns.taken[key(name)] = true
			}
			for _, name := range tc.wait {
				turns.waiting = append(turns.waiting, asker{key(name), true})
			}
			var got []string
			for _, next := range turns.next(tc.limit) {
				got = append(got, next.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTurnsInTurn: where one cluster changes at a time, namespaces take turns. The only cluster of
// one does not wait for all those of another that asked before it.
func TestTurnsInTurn(t *testing.T) {
	t.Parallel()
	var turns turns
	now := time.Now()
	key := func(name string) types.NamespacedName {
		namespace, name, _ := strings.Cut(name, "/")
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	enter := func(key types.NamespacedName) error {
		return turns.enter(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, 1)
	}
	rests := membership.Step{Action: membership.None, Reason: membership.Healthy}
	if err := enter(key("z/1")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"} {
		if enter(key(name)) == nil {
			t.Fatalf("%s gets a turn that is taken", name)
		}
	}
	turns.leave(key("z/1"), 1, rests, now)
	var order []string
	for next := turns.next(1); len(next) > 0; next = turns.next(1) {
		order = append(order, next[0].String())
		if err := enter(next[0]); err != nil {
			t.Fatal(err)
		}
		turns.leave(next[0], 1, rests, now)
	}
	if diff := cmp.Diff([]string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTurnsResumed: an operator that starts counts the clusters that may have members away, and
// keeps the order of those that wait.
func TestTurnsResumed(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	cluster := func(name string, age time.Duration, conditions ...metav1.Condition) *api.EtcdCluster {
		c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		c.Status.ClusterID = "c0"
		for _, condition := range conditions {
			condition.LastTransitionTime = metav1.NewTime(time.Unix(10000, 0).Add(-age))
			meta.SetStatusCondition(&c.Status.Conditions, condition)
		}
		objects = append(objects, c)
		return c
	}
	reconciling := func(reason string) metav1.Condition {
		return metav1.Condition{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: reason}
	}
	cluster("healthy", 0)
	cluster("changing", 0, reconciling(api.ReasonChanging))
	cluster("away", 0, reconciling(api.ReasonUnreachable)) // its only member is being changed
	cluster("written-down", 0).Status.Operation = &api.Operation{Step: string(membership.Update)}
	cluster("queued-last", time.Minute, reconciling(api.ReasonQueued))
	cluster("queued-first", time.Hour, reconciling(api.ReasonQueued))
	cluster("queued-too", time.Minute, reconciling(api.ReasonQueued))
	cluster("stalled", 0, metav1.Condition{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonChangeFailed})
	cluster("backing-up", 0, reconciling(api.ReasonBackingUp)) // it has begun, and for how long is not known
	cluster("forming", 0, reconciling(api.ReasonBootstrapping)).Status.ClusterID = ""
	s := newStub(t, nil, objects...)
	var woken []string
	s.changing.wake = func(key types.NamespacedName) { woken = append(woken, key.Name) }
	for range 2 { // only the first counts
		if err := s.changing.resume(t.Context(), s.Client, 5); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"written-down", "away", "backing-up", "changing", "queued-first"}, woken); diff != "" {
		t.Errorf("which are looked at first: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"away", "backing-up", "changing", "written-down"}, taken(&s.changing)); diff != "" {
		t.Errorf("which have a turn: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]types.NamespacedName{turnOf("queued-first"), turnOf("queued-last"), turnOf("queued-too")}, s.changing.next(7)); diff != "" {
		t.Errorf("which wait: -want +got:\n%s", diff)
	}
}

// TestTurnOf: one pass over a cluster whose spec asks for a change, while another one has the only
// turn or none has.
func TestTurnOf(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(pods, "db-0", errors.New("images of that registry are not allowed"))
	on := func(kind string, err error) func(write) error {
		return func(w write) error {
			if w.Kind == kind {
				return err
			}
			return nil
		}
	}
	type result struct {
		Taken   []string
		Waiting int
		Ready   string // the reason, and the message
	}
	queued := func(then string) string {
		return "Queued: waiting for its turn behind other clusters, of which at most 1 change at a time (--max-changing); then " + then
	}
	const inPlace = "changing db-0 in place from 3.6.16 to 3.7.3, then db-2, db-1"
	refused := func(generation int64) func(*world) {
		return func(w *world) {
			meta.SetStatusCondition(&w.cluster.Status.Conditions, metav1.Condition{
				Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonRefused, Message: "no", ObservedGeneration: generation,
			})
		}
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		other  bool // has the turn
		mine   bool // has the turn
		refuse func(write) error
		want   result
	}{
		"Taken":  {reason: "there is one", want: result{Taken: []string{"db"}, Ready: "Changing: " + inPlace}},
		"Queued": {reason: "nothing is written but why", other: true, want: result{Taken: []string{"other"}, Waiting: 1, Ready: queued(inPlace)}},
		"Downgrade": {
			reason: "nor is etcd told to prepare it, after which no member could be added until it is done", other: true,
			given: func(w *world) { w.runs("3.7.3", image37, "db-0", "db-1", "db-2"); w.cluster.Spec.Version = "3.6.16" },
			want:  result{Taken: []string{"other"}, Waiting: 1, Ready: queued("having etcd make its data readable for 3.6")},
		},
		"Invalid": {
			reason: "etcd is not told to prepare what will not be", given: func(w *world) {
				w.cluster.Spec.Version, w.cluster.Spec.Options = "3.5.35", &api.Options{Flags: map[string]string{"log-format": "json"}}
			},
			want: result{Ready: "InvalidSpec: spec.options.flags: etcd 3.5.35 has no flag log-format, it was added in 3.6; leave it out"},
		},
		"Refused": {
			reason: "a refusal lasts until a person acts, and no other waits for that", mine: true, refuse: on("Pod", forbidden),
			want: result{Ready: `Refused: the API server refuses what the spec asks for: pods "db-0" is forbidden: images of that registry are not allowed`},
		},
		"RefusedStill": {
			reason: "it waits to try again, and until then nothing is known but that it was refused", other: true, given: refused(7),
			want: result{Taken: []string{"other"}, Waiting: 1, Ready: "Refused: no"},
		},
		"RefusedBefore": {
			reason: "that was another spec", other: true, given: refused(6),
			want: result{Taken: []string{"other"}, Waiting: 1, Ready: queued(inPlace)},
		},
		"NotReported": {
			reason: "as far as the next operator could see it changes", mine: true,
			given: func(w *world) { w.cluster.Spec.Suspend = true }, refuse: on("status", apierrors.NewInternalError(errors.New("down"))),
			want: result{Taken: []string{"db"}},
		},
		"Suspended": {
			reason: "it may be so for ever", mine: true, given: func(w *world) { w.cluster.Spec.Suspend = true },
			want: result{Ready: "Suspended: suspended by spec.suspend; without it: " + inPlace},
		},
		"Gone": {reason: "there is none left to have it", mine: true, given: func(w *world) { w.cluster.Name = "another" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.upgrading()
			if tc.given != nil {
				tc.given(&w)
			}
			w.address()
			w.managed()
			s := newStub(t, tc.refuse, w.objects()...)
			s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
			s.MaxChanging = 1
			s.changing.resumed, s.changing.taken = true, map[types.NamespacedName]bool{}
			for name, has := range map[string]bool{"other": tc.other, "db": tc.mine} {
				if has {
					s.changing.taken[turnOf(name)] = true
				}
			}
			_, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: turnOf("db")})
			got := result{Taken: taken(&s.changing), Waiting: len(s.changing.waiting)}
			if n := len(s.status); n > 0 {
				ready := meta.FindStatusCondition(s.status[n-1].Conditions, api.ConditionReady)
				got.Ready = ready.Reason + ": " + ready.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: error %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestSlowTurns: a cluster that waits is told which others keep it waiting, once they have done
// nothing for a minute.
func TestSlowTurns(t *testing.T) {
	t.Parallel()
	now := time.Now()
	took := func(namespace, name string, ago time.Duration) func(*turns) {
		return func(turns *turns) {
			c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if err := turns.enter(c, 20); err != nil {
				t.Error(err)
			}
			turns.leave(client.ObjectKeyFromObject(c), 20, membership.Step{Action: membership.Update, Reason: membership.Changing}, now.Add(-ago))
		}
	}
	cases := map[string]struct {
		reason string
		took   []func(*turns)
		want   string
	}{
		"None":  {reason: "there is no turn to be had, and no cluster that has one"},
		"Quick": {reason: "those that go on are named by the metric alone", took: []func(*turns){took("ns", "a", 59*time.Second)}},
		"Slow":  {reason: "a person may look at these", took: []func(*turns){took("ns", "b", time.Hour), took("ns", "a", time.Minute), took("ns", "c", 0)}, want: "a, b"},
		"Others": {
			reason: "the names in other namespaces may be of no concern here",
			took:   []func(*turns){took("ns", "a", time.Hour), took("elsewhere", "b", time.Hour), took("elsewhere", "c", time.Hour)}, want: "a, 2 in other namespaces",
		},
		"Many": {
			reason: "a message stays short",
			took: []func(*turns){
				took("ns", "a", time.Hour), took("ns", "b", time.Hour), took("ns", "c", time.Hour), took("ns", "d", time.Hour),
				took("ns", "e", time.Hour), took("ns", "f", time.Hour), took("ns", "g", time.Hour),
			},
			want: "a, b, c, d, e, 2 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns turns
			for _, take := range tc.took {
				take(&turns)
			}
			if got := turns.slow("ns", now); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
