package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// leadsTo is an EndpointSlice of the Service for clients, with these Pods as ready endpoints.
func leadsTo(members ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "db-client-" + strings.Join(members, "-"), Labels: map[string]string{discoveryv1.LabelServiceName: "db-client"},
	}}
	for _, name := range members {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name, UID: types.UID("pod-of-" + name)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return s
}

// TestDrain: before a member is touched the Service for clients leads to others.
func TestDrain(t *testing.T) {
	inPlace := membership.Step{Action: membership.Update, Change: membership.ChangeImage, Members: []string{"db-0"}}
	label := func(value string) func(*observed) {
		return func(seen *observed) { seen.pods["db-0"].Labels[api.LabelClients] = value }
	}
	notReady := leadsTo("db-1")
	notReady.Endpoints = append(notReady.Endpoints, leadsTo("db-0").Endpoints...)
	notReady.Endpoints[1].Conditions.Ready = new(false)
	unknown := leadsTo("db-1", "db-0")
	unknown.Endpoints[1].Conditions.Ready = nil
	earlier := leadsTo("db-1", "db-0")
	earlier.Endpoints[1].TargetRef.UID = "an-earlier-pod"
	elsewhere := leadsTo("db-0", "db-1")
	elsewhere.Labels[discoveryv1.LabelServiceName] = "db"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "", errors.New("no"))
	const (
		taking  = "taking db-0 out of Service db-client"
		waiting = "waiting for Service db-client to lead to another member than db-0"
	)
	cases := map[string]struct {
		reason string
		slices []client.Object
		step   *membership.Step
		seen   func(*observed)
		lasts  time.Duration // for how long it was waited for
		gone   time.Duration // for how long the Service has been without it, where proxies follow in two seconds
		list   error
		size   int32 // that is asked for; 0 is three
		out    []string
		want   string // empty: the step is taken
	}{
		"Led":           {reason: "a client that is led to a container that is being stopped waits out its back-off", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")}, out: []string{"db-0"}, want: taking},
		"StillLed":      {reason: "the label alone leads no client elsewhere", slices: []client.Object{leadsTo("db-0", "db-1")}, seen: label(api.ClientsOut), out: []string{"db-0"}, want: taking},
		"OfTwoFamilies": {reason: "one slice that still has it is enough", slices: []client.Object{leadsTo("db-1", "db-2"), leadsTo("db-0", "db-1", "db-2")}, seen: label(api.ClientsOut), out: []string{"db-0"}, want: taking},
		"Unknown":       {reason: "an endpoint of unknown readiness gets connections", slices: []client.Object{unknown}, out: []string{"db-0"}, want: taking},
		"Out":           {reason: "no client is led to it any more", slices: []client.Object{leadsTo("db-1", "db-2")}, seen: label(api.ClientsOut)},
		"JustOut":       {reason: "the proxies of nodes follow a moment later", slices: []client.Object{leadsTo("db-1", "db-2")}, seen: label(api.ClientsOut), gone: time.Second, out: []string{"db-0"}, want: taking},
		"LongOut":       {reason: "and then they have", slices: []client.Object{leadsTo("db-1", "db-2")}, seen: label(api.ClientsOut), gone: 3 * time.Second},
		"NotReady":      {reason: "no client is led to an endpoint that is not ready", slices: []client.Object{notReady}},
		"EarlierPod":    {reason: "an endpoint of an earlier Pod is none of this one", slices: []client.Object{earlier}},
		"NoSlices":      {reason: "without a controller of EndpointSlices there is nothing to wait for"},
		"OfAnother":     {reason: "the headless Service leads to all, whatever becomes of them", slices: []client.Object{elsewhere}},
		"Last":          {reason: "with another one about to be ready it is waited for", slices: []client.Object{leadsTo("db-0")}, want: waiting},
		"LastOut":       {reason: "the same where it is out already", slices: []client.Object{leadsTo()}, seen: label(api.ClientsOut), want: waiting},
		"NoEndpoint":    {reason: "a Service without an endpoint loses none", slices: []client.Object{leadsTo()}},
		"Alone": {
			reason: "without another member that serves it is restarted in the Service", slices: []client.Object{leadsTo("db-0")},
			seen: func(seen *observed) {
				seen.Instances[1].Endpoint, seen.Instances[2].Endpoint = membership.Endpoint{}, membership.Endpoint{}
			},
		},
		"InVain":      {reason: "where slices do not change any more the step is taken all the same", slices: []client.Object{leadsTo("db-0", "db-1")}, seen: label(api.ClientsOut), lasts: drainFor + time.Second},
		"LastInVain":  {reason: "so where no other one becomes ready", slices: []client.Object{leadsTo("db-0")}, lasts: drainFor + time.Second},
		"NotYet":      {reason: "the wait has a bound, and not a shorter one", slices: []client.Object{leadsTo("db-0", "db-1")}, lasts: drainFor / 2, out: []string{"db-0"}, want: taking},
		"NotAllowed":  {reason: "an installation of an earlier release lacks the right, and changes its clusters", list: forbidden},
		"Terminating": {reason: "one that is going is led to no more", slices: []client.Object{leadsTo("db-0", "db-1")}, seen: func(seen *observed) { seen.pods["db-0"].DeletionTimestamp = new(metav1.Now()) }},
		"Resources": {
			reason: "cpu and memory restart nothing", slices: []client.Object{leadsTo("db-0", "db-1")},
			step: &membership.Step{Action: membership.Update, Change: membership.ChangeResources, Members: []string{"db-0"}},
		},
		"Pod": {
			reason: "a Pod that is recreated", slices: []client.Object{leadsTo("db-0", "db-1")},
			step: &membership.Step{Action: membership.Update, Change: membership.ChangePod, Members: []string{"db-0"}}, out: []string{"db-0"}, want: taking,
		},
		"Remove": {
			reason: "etcd that was removed ends within the second", slices: []client.Object{leadsTo("db-0", "db-1")},
			step: &membership.Step{Action: membership.Remove, Members: []string{"db-0"}}, out: []string{"db-0"}, want: taking,
		},
		"MoveLeader": {
			reason: "it is the leader that is about to go, and not its heir", slices: []client.Object{leadsTo("db-0", "db-1")},
			step: &membership.Step{Action: membership.MoveLeader, Members: []string{"db-0"}}, out: []string{"db-1"}, want: "taking db-1 out of Service db-client",
		},
		"Shrink": {
			reason: "all that are to go leave at once", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")},
			seen: func(seen *observed) { seen.Instances[1].Pod.Outdated = true },
			step: &membership.Step{Action: membership.MoveLeader, Members: []string{"db-0"}, Reason: membership.ScalingDown}, size: 1,
			out: []string{"db-1", "db-2"}, want: "taking db-1, db-2 out of Service db-client",
		},
		"Next": {
			reason: "while another member proves that it runs well, clients leave the one that follows", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")},
			seen: func(seen *observed) {
				seen.Instances[2].Pod.Untried, seen.Instances[2].Pod.Unproved = []string{"options"}, true
				seen.Instances[0].Pod.Change, seen.Instances[0].Pod.Parts = membership.ChangePod, []string{"options"}
			},
			step: &membership.Step{Action: membership.Wait, Reason: membership.Changing}, out: []string{"db-0"}, want: taking,
		},
		"NextWaitsForOther": {
			reason: "a wait for anything else says nothing of what follows", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")},
			seen: func(seen *observed) {
				seen.Instances[2].Pod.Untried, seen.Instances[2].Pod.Unproved = []string{"options"}, true
				seen.Instances[0].Pod.Change, seen.Instances[0].Pod.Parts = membership.ChangePod, []string{"options"}
			},
			step: &membership.Step{Action: membership.Wait, Reason: membership.MemberDown},
		},
		"Hibernate": {
			reason: "where all members stop there is no other to lead to", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")},
			step: &membership.Step{Action: membership.Stop, Members: []string{"db-0", "db-1", "db-2"}},
		},
		"Promote": {
			reason: "a promotion interrupts no client", slices: []client.Object{leadsTo("db-0", "db-1", "db-2")},
			step: &membership.Step{Action: membership.Promote, Members: []string{"db-0"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			if tc.seen != nil {
				tc.seen(&seen)
			}
			step := inPlace
			if tc.step != nil {
				step = *tc.step
			}
			if tc.size > 0 {
				c.Spec.Replicas = &tc.size
			}
			seen.touched = touched(c, seen, step)
			s := newStub(t, nil, tc.slices...)
			if tc.list != nil {
				s.Reader = failingList{s.Reader, tc.list}
			}
			if tc.lasts > 0 {
				s.draining.begun.Store(client.ObjectKeyFromObject(c), drained{members: []string{"db-0"}, since: time.Now().Add(-tc.lasts)})
			}
			if tc.gone > 0 {
				s.ProxiesFollow = 2 * time.Second
				s.draining.ended.Store(client.ObjectKeyFromObject(c), drained{members: []string{"db-0"}, since: time.Now().Add(-tc.gone)})
			}
			err := s.drain(t.Context(), c, seen)
			var draining *drainingError
			if err != nil && !errors.As(err, &draining) {
				t.Fatal(err)
			}
			got := ""
			if draining != nil {
				got = draining.message
				if diff := cmp.Diff(tc.out, draining.members); diff != "" {
					t.Errorf("%s: to be out: -want +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(s.writes) > 0 {
				t.Errorf("%s: %v was written", tc.reason, s.writes)
			}
		})
	}
}

// failingList is a reader of which no list comes.
type failingList struct {
	client.Reader
	err error
}

func (f failingList) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return f.err
}

// TestOut: a member is out of the Service for clients from the drain until it has answered from
// what it was changed to, and no longer than it is about to be touched.
func TestOut(t *testing.T) {
	cases := map[string]struct {
		reason string
		label  string // of the Pod; "none" is a member without one
		seen   func(*observed)
		want   bool
	}{
		"In":          {reason: "at rest no member is out", label: api.ClientsIn},
		"Earlier":     {reason: "nor is a Pod of an earlier release", label: ""},
		"Drained":     {reason: "this pass takes it out", label: api.ClientsIn, seen: func(seen *observed) { seen.out, seen.touched = []string{"db-0"}, []string{"db-0"} }, want: true},
		"AboutTo":     {reason: "it stays out while the step is still to be taken", label: api.ClientsOut, seen: func(seen *observed) { seen.touched = []string{"db-0"} }, want: true},
		"InAndNext":   {reason: "it is taken out by its drain alone", label: api.ClientsIn, seen: func(seen *observed) { seen.touched = []string{"db-0"} }},
		"Changing":    {reason: "nor does it serve from what it was changed to before it has answered", label: api.ClientsOut, seen: func(seen *observed) { seen.Instances[0].Pod.Changing = true }, want: true},
		"Resizing":    {reason: "one that was never out stays in", label: api.ClientsIn, seen: func(seen *observed) { seen.Instances[0].Pod.Changing = true }},
		"Reverted":    {reason: "the step is not to be taken after all, or another one comes first", label: api.ClientsOut},
		"NextIsOther": {reason: "the same where another one is about to be touched", label: api.ClientsOut, seen: func(seen *observed) { seen.touched = []string{"db-1"} }},
		"NoPod":       {reason: "a Pod that is yet to be created is in", label: "none", seen: func(seen *observed) { seen.touched = []string{"db-0"} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			if tc.label == "none" {
				delete(seen.pods, "db-0")
			} else {
				seen.pods["db-0"].Labels[api.LabelClients] = tc.label
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			if got := member(newCluster(), seen, "db-0").Out; got != tc.want {
				t.Errorf("%s: out is %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLabelled: the Service for clients goes by the label of its Pods when they have it, and never
// leads to none for it.
func TestLabelled(t *testing.T) {
	now := time.Now()
	ready := func(name, value string, since time.Duration) *corev1.Pod {
		pod := newPod(name)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if value != "" {
			pod.Labels[api.LabelClients] = value
		}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: api.Manager, Time: new(metav1.NewTime(now.Add(-since)))}, {Manager: "kubelet", Time: new(metav1.NewTime(now))}}
		return pod
	}
	notReady := func(pod *corev1.Pod) *corev1.Pod {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		return pod
	}
	going := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = new(metav1.NewTime(now))
		return pod
	}
	plain := render.Selector(newCluster())
	asks := map[string]string{api.LabelCluster: "db", api.LabelClients: api.ClientsIn}
	cases := map[string]struct {
		reason   string
		selector map[string]string
		pods     []*corev1.Pod
		want     bool
	}{
		"New":            {reason: "a Service without a selector asks for the label from the first", pods: []*corev1.Pod{ready("db-0", api.ClientsIn, 0), ready("db-1", api.ClientsIn, 0)}, want: true},
		"Earlier":        {reason: "Pods of an earlier release would be led to no more", selector: plain, pods: []*corev1.Pod{ready("db-0", "", time.Hour), ready("db-1", "", time.Hour)}},
		"EarlierAnew":    {reason: "the same where the Service was deleted", pods: []*corev1.Pod{ready("db-0", "", time.Hour)}},
		"Shut":           {reason: "a restore in place is over, and its Pods have the label from the first", selector: map[string]string{api.LabelCluster: "db", api.LabelClients: api.ClientsShut}, pods: []*corev1.Pod{ready("db-3", api.ClientsIn, 0)}, want: true},
		"OneOfThem":      {reason: "while one of them lacks it", selector: plain, pods: []*corev1.Pod{ready("db-0", "", time.Hour), ready("db-1", api.ClientsIn, time.Hour)}},
		"JustNow":        {reason: "the controller of EndpointSlices may not have seen the label yet", selector: plain, pods: []*corev1.Pod{ready("db-0", api.ClientsIn, time.Second), ready("db-1", api.ClientsIn, time.Hour)}},
		"Labelled":       {reason: "and then it has", selector: plain, pods: []*corev1.Pod{ready("db-0", api.ClientsIn, 3*time.Second), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"DrainedFirst":   {reason: "one that is out says so by its label", selector: plain, pods: []*corev1.Pod{ready("db-0", api.ClientsOut, time.Hour), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"NotReady":       {reason: "one that is not ready is led to in no way", selector: plain, pods: []*corev1.Pod{notReady(ready("db-0", "", time.Hour)), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"Going":          {reason: "nor is one that is going", selector: plain, pods: []*corev1.Pod{going(ready("db-0", "", time.Hour)), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"Asleep":         {reason: "without Pods the next ones have it", selector: plain, want: true},
		"Stays":          {reason: "what is changed later is nothing new", selector: asks, pods: []*corev1.Pod{ready("db-0", api.ClientsIn, 0), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"OneLost":        {reason: "one that has lost it gets it again, and the others are led to", selector: asks, pods: []*corev1.Pod{ready("db-0", "", 0), ready("db-1", api.ClientsIn, time.Hour)}, want: true},
		"AllLost":        {reason: "an earlier release has taken it away from all, or a policy does", selector: asks, pods: []*corev1.Pod{ready("db-0", "", 0), ready("db-1", "", time.Hour)}},
		"AllLostButOuts": {reason: "the same where those that have it are out", selector: asks, pods: []*corev1.Pod{ready("db-0", "", 0), ready("db-1", api.ClientsOut, time.Hour)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := map[string]*corev1.Pod{}
			for _, pod := range tc.pods {
				pods[pod.Name] = pod
			}
			service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: tc.selector}}
			if got := labelled(service, pods, now); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestDrains: the bound of a drain is that of this drain.
func TestDrains(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "db"}
	var d drains
	d.begun.Store(key, drained{[]string{"db-0"}, time.Now().Add(-time.Hour)})
	if got := d.lasts(key, []string{"db-0"}); got < time.Hour {
		t.Errorf("db-0 is waited for since an hour, and not for %s", got)
	}
	if got := d.lasts(key, []string{"db-1"}); got != 0 {
		t.Errorf("the next one is waited for from now on, and not for %s", got)
	}
	d.begun.Store(key, drained{[]string{"db-1", "db-0"}, time.Now().Add(-time.Hour)})
	d.forget(key)
	if got := max(d.lasts(key, []string{"db-1"}), d.gone(key, []string{"db-1"})); got != 0 {
		t.Errorf("a drain that ended is not counted to the next, which lasts for %s", got)
	}
}

// TestActDraining: one pass takes the label away and nothing else, gives it back to all others, and
// tells what it waits for.
func TestActDraining(t *testing.T) {
	c, seen := newCluster(), healthy()
	c.Status.ClusterID = seen.ID().String()
	seen.claims = nil
	seen.pods["db-2"].Labels[api.LabelClients] = api.ClientsOut // it was to be changed, and is not
	s := newStub(t, nil, leadsTo("db-0", "db-1"))
	step := membership.Step{Action: membership.Remove, Members: []string{"db-0"}, ID: 0xa0, Reason: membership.MemberLost, Message: "removing db-0, whose data is gone"}
	err := s.act(t.Context(), c, seen, step)
	instead, ok := obstacle(err, step)
	want := membership.Step{
		Action: membership.Wait, Reason: membership.MemberLost,
		Message: "taking db-0 out of Service db-client before removing db-0, whose data is gone",
	}
	if diff := cmp.Diff(want, instead); diff != "" || !ok {
		t.Errorf("-want +got:\n%s", diff)
	}
	labels := map[string]string{}
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		labels[name] = s.labels["Pod "+name][api.LabelClients]
	}
	if diff := cmp.Diff(map[string]string{"db-0": api.ClientsOut, "db-1": api.ClientsIn, "db-2": api.ClientsIn}, labels); diff != "" {
		t.Errorf("labels: -want +got:\n%s", diff)
	}
	if slices.ContainsFunc(s.writes, func(w write) bool { return w.Kind == "status" || w.Verb != "apply" }) {
		t.Errorf("more was written: %v", s.writes)
	}
}

// TestMeanwhile: the status of a cluster whose spec is wrong says what goes on all the same.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		given  func(*world)
		step   membership.Step // the zero one: as it is planned
		tells  bool
	}{
		"Shrinks": {reason: "that takes no Pod of the spec", given: func(w *world) { w.cluster.Spec.Replicas = new(int32(1)) }, tells: true},
		"Starts":  {reason: "a member comes back with what it has served with", given: func(w *world) { delete(w.pods, "db-1") }, tells: true},
		"Waits":   {reason: "what is waited for comes", step: membership.Step{Action: membership.Wait, Reason: membership.Joining, Message: "waiting for db-2"}, tells: true},
		"Rests":   {reason: "nothing goes on"},
		"Changes": {
			reason: "no member is changed to what is wrong",
			step:   membership.Step{Action: membership.Update, Change: membership.ChangePod, Reason: membership.Changing, Members: []string{"db-2"}, Message: "changing db-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			if tc.given != nil {
				tc.given(&w)
			}
			w.cluster.Spec.Options = &api.Options{Flags: map[string]string{"no-such-flag": "1"}}
			w.address()
			s := newStub(t, nil, w.objects()...)
			s.Dial = w.dial(func(string) error { return nil })
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := tc.step
			if step.Action == "" {
				step = membership.Plan(desired(w.cluster), seen.Observed)
			}
			err = s.act(t.Context(), w.cluster, seen, step)
			invalid, ok := errors.AsType[*invalidError](err)
			if !ok {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := membership.Step{Action: membership.Stall, Reason: membership.InvalidSpec, Message: invalid.Error()}
			if tc.tells {
				want.Message += ". Meanwhile: " + step.Message
			}
			got, _ := obstacle(err, step)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackWhileHeld: a member that has left the Service for a change is in it again while that is
// held up.
func TestBackWhileHeld(t *testing.T) {
	t.Parallel()
	update := membership.Step{
		Action: membership.Update, Change: membership.ChangePod, Reason: membership.Changing, Members: []string{"db-2"},
		Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Message: "changing db-2",
	}
	for name, tc := range map[string]struct {
		reason string
		found  *credentials
		busy   bool // as many others change as may
	}{
		"Certificates": {reason: "a Secret is missing", found: &credentials{blocked: errBlocked}},
		"Queued":       {reason: "others change", busy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID = seen.ID().String()
			seen.claims, seen.credentials = nil, tc.found
			seen.pods["db-2"].Labels[api.LabelClients] = api.ClientsOut
			s := newStub(t, nil, leadsTo("db-0", "db-1"))
			if tc.busy {
				s.MaxChanging, s.changing.taken = 1, map[types.NamespacedName]bool{{Namespace: "ns", Name: "other"}: true}
			}
			if err := s.act(t.Context(), c, seen, update); err == nil {
				t.Errorf("%s: nothing holds the change up", tc.reason)
			}
			if got := s.labels["Pod db-2"][api.LabelClients]; got != api.ClientsIn {
				t.Errorf("%s: the label is %q, want %q", tc.reason, got, api.ClientsIn)
			}
		})
	}
}

// TestKeptOut: a suspended cluster is not touched, and its status tells of members to which clients
// are not led.
func TestKeptOut(t *testing.T) {
	rests := membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "3 healthy members"}
	next := membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend; without it: removing db-2"}
	cases := map[string]struct {
		reason string
		out    []string
		step   membership.Step
		want   membership.Step
	}{
		"None":   {reason: "no member is out", step: rests, want: rests},
		"AtRest": {reason: "a cluster that clients do not come to as it is meant is not Ready", out: []string{"db-0", "db-2"}, step: rests, want: membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend; meanwhile Service db-client does not lead to db-0, db-2"}},
		"Amid":   {reason: "what would come next is told as well", out: []string{"db-2"}, step: next, want: membership.Step{Action: membership.None, Reason: membership.Suspended, Message: next.Message + "; meanwhile Service db-client does not lead to db-2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			for _, name := range tc.out {
				seen.pods[name].Labels[api.LabelClients] = api.ClientsOut
			}
			if diff := cmp.Diff(tc.want, keptOut(newCluster(), seen, tc.step)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTouched: which members a step makes clients feel, beside those that its drain tells of.
func TestTouched(t *testing.T) {
	cases := map[string]struct {
		reason string
		step   membership.Step
		size   int32
		want   []string
	}{
		"Retiring":  {reason: "the next ones to go stay out while the first one's volume goes", step: membership.Step{Action: membership.Discard, Reason: membership.Retiring, Members: []string{"db-3"}}, size: 1, want: []string{"db-2", "db-1", "db-3"}},
		"Retired":   {reason: "no other one is to go", step: membership.Step{Action: membership.Discard, Reason: membership.Retiring, Members: []string{"db-3"}}, size: 3, want: []string{"db-3"}},
		"Waiting":   {reason: "what has to wait is led to meanwhile", step: membership.Step{Action: membership.Wait, Reason: membership.ScalingDown}, size: 1},
		"Replacing": {reason: "one that is replaced is no surplus", step: membership.Step{Action: membership.Remove, Reason: membership.MemberLost, Members: []string{"db-0"}}, size: 1, want: []string{"db-0"}},
		"PutBack":   {reason: "it stays out until it has answered", step: membership.Step{Action: membership.PutBack, Members: []string{"db-1"}}, size: 3, want: []string{"db-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Spec.Replicas = &tc.size
			if diff := cmp.Diff(tc.want, touched(c, healthy(), tc.step)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
