package reconcile

import (
	order "cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// TestAct holds the writes of one pass, each with the state of the object that it is bound to. The
// objects that were seen lack the metadata that Quorate gives them, so that all of it is to be
// written.
func TestAct(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "db", errors.New("by policy"))
	noService := func(w write) error {
		if w.Kind == "Service" {
			return forbidden
		}
		return nil
	}
	static := []write{
		{Verb: "apply", Kind: "PodDisruptionBudget", Name: "db"},
		{Verb: "apply", Kind: "Service", Name: "db"},
		{Verb: "apply", Kind: "Service", Name: "db-client"},
	}
	status := write{Verb: "apply", Kind: "status"}
	claim := func(name string) write {
		return write{"apply", "PersistentVolumeClaim", name, "claim-of-" + name, "5"}
	}
	pod := func(name string) write { return write{"apply", "Pod", name, "pod-of-" + name, "5"} }
	metadata := []write{claim("db-0"), claim("db-1"), claim("db-2"), pod("db-0"), pod("db-1"), pod("db-2")}
	start := membership.Step{Action: membership.Start, Reason: membership.Starting, Members: []string{"db-1"}}
	update := membership.Step{
		Action: membership.Update, Change: membership.ChangeImage, Reason: membership.Changing, Members: []string{"db-0"},
		Version: membership.Version{Major: 3, Minor: 6, Patch: 17},
	}
	withoutPod := func(seen *observed) {
		seen.Instances[1].Pod, seen.Instances[1].Endpoint = membership.Pod{}, membership.Endpoint{}
		delete(seen.pods, "db-1")
	}

	cases := map[string]struct {
		reason  string
		cluster func(*api.EtcdCluster)
		seen    func(*observed)
		step    membership.Step
		busy    bool // as many others change as may
		refuse  func(write) error
		want    []write
		err     error
	}{
		"Maintain": {
			reason: "metadata is applied to the very objects that were seen, and must never create one again",
			step:   membership.Step{Action: membership.None, Reason: membership.Healthy},
			want:   slices.Concat(static, metadata),
		},
		"Suspended": {
			reason:  "nothing is touched",
			cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			step:    membership.Step{Action: membership.None, Reason: membership.Suspended},
		},
		"Deleting": {
			reason:  "nothing is touched",
			cluster: func(c *api.EtcdCluster) { c.DeletionTimestamp = new(metav1.Now()) },
			step:    membership.Step{Action: membership.None, Reason: membership.Deleting},
		},
		"Foreign": {
			reason: "what may have another owner is not written to",
			step:   membership.Step{Action: membership.Stall, Reason: membership.ForeignObject},
			want:   static,
		},
		"StartWithoutService": {
			reason: "a Service that is refused must not keep a member of a formed cluster down",
			seen:   withoutPod,
			step:   start,
			refuse: noService,
			want: []write{
				{"apply", "Pod", "db-1", "", apply.OnlyIfAbsent}, {Verb: "apply", Kind: "PodDisruptionBudget", Name: "db"},
				claim("db-0"), claim("db-1"), claim("db-2"), pod("db-0"), pod("db-2"),
			},
			err: forbidden,
		},
		"BootstrapWithoutService": {
			reason: "without the Service the first members could not find each other",
			seen:   func(seen *observed) { *seen = observed{} },
			step:   membership.Step{Action: membership.Bootstrap, Members: []string{"db-0"}, First: membership.First{Token: "cluster", Size: 1}},
			refuse: noService,
			want:   []write{{Verb: "apply", Kind: "PodDisruptionBudget", Name: "db"}},
			err:    forbidden,
		},
		"Stop": {
			reason: "the intent is written down, and then these very Pods go, whatever the kubelet says of them meanwhile",
			seen:   func(seen *observed) { seen.claims = nil },
			step:   membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-0", "db-2"}},
			want: slices.Concat(static, []write{status}, []write{pod("db-0"), pod("db-1"), pod("db-2")}, []write{
				{"delete", "Pod", "db-0", "pod-of-db-0", ""}, {"delete", "Pod", "db-2", "pod-of-db-2", ""},
			}),
		},
		"StopIntended": {
			reason: "what is written down already is written again: it shows that the spec is still the one that was seen",
			cluster: func(c *api.EtcdCluster) {
				c.Status.Operation = &api.Operation{Step: "Stop", Holder: "us", Since: new(metav1.Now()), Targets: []api.OperationTarget{
					{Member: "db-0", UID: "pod-of-db-0"}, {Member: "db-2", UID: "pod-of-db-2"},
				}}
			},
			seen: func(seen *observed) { seen.claims = nil },
			step: membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-0", "db-2"}},
			want: slices.Concat(static, []write{status}, []write{pod("db-0"), pod("db-1"), pod("db-2")}, []write{
				{"delete", "Pod", "db-0", "pod-of-db-0", ""}, {"delete", "Pod", "db-2", "pod-of-db-2", ""},
			}),
		},
		"StopReplacing": {
			reason: "a Pod that goes for what it does goes only while it still does it",
			seen:   func(seen *observed) { seen.claims = nil },
			step:   membership.Step{Action: membership.Stop, Reason: membership.Replacing, Members: []string{"db-2"}},
			want: slices.Concat(static, []write{status}, []write{pod("db-0"), pod("db-1"), pod("db-2")}, []write{
				{"delete", "Pod", "db-2", "pod-of-db-2", "5"},
			}),
		},
		"Queued": {
			reason: "what disturbs no member does not wait for the cluster's turn",
			step:   update, busy: true,
			want: slices.Concat(static, metadata),
			err:  queuedError{limit: 1},
		},
		"Refused": {
			reason: "nor for what the API server refuses",
			step:   update,
			refuse: func(w write) error {
				if w.Verb == "try" {
					return forbidden
				}
				return nil
			},
			want: slices.Concat(static, metadata),
			err:  forbidden,
		},
		"Certificates": {
			reason: "while a Secret is wrong only a member that is out of the Service for clients is touched",
			seen: func(seen *observed) {
				seen.credentials = &credentials{blocked: errBlocked}
				seen.pods["db-2"].Labels[api.LabelClients] = api.ClientsOut
			},
			step: update,
			want: slices.Concat(static, []write{claim("db-2"), pod("db-2")}),
			err:  errBlocked,
		},
		"Invalid": {
			reason:  "nor for a spec of which no Pod can be made",
			cluster: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"no-such-flag": "1"}} },
			step:    update,
			want:    slices.Concat(static, metadata),
			err:     errInvalid,
		},
		"InvalidAtRest": {
			reason:  "nor where nothing is to be changed now",
			cluster: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"no-such-flag": "1"}} },
			step:    membership.Step{Action: membership.None, Reason: membership.Healthy},
			want:    slices.Concat(static, metadata),
			err:     errInvalid,
		},
		"Useless": {
			reason:  "nor for a value that etcd takes and does not serve with",
			cluster: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"max-txn-ops": "0"}} },
			step:    membership.Step{Action: membership.None, Reason: membership.Healthy},
			want:    slices.Concat(static, metadata),
			err:     errInvalid,
		},
		"UselessServed": {
			reason:  "but what a member has served with is right, whatever this release says of new values",
			cluster: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"max-txn-ops": "0"}} },
			seen: func(seen *observed) {
				metav1.SetMetaDataAnnotation(&seen.claims["db-1"].ObjectMeta, api.AnnotationServed, `{"version":"3.6.15","options":{"flags":{"max-txn-ops":"0","pre-vote":"true"}}}`)
			},
			step: membership.Step{Action: membership.None, Reason: membership.Healthy},
			want: slices.Concat(static, metadata),
		},
		"Large": {
			reason: "nor for a spec of which nothing could be kept: the records stay as they are",
			cluster: func(c *api.EtcdCluster) {
				not := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: slices.Repeat([]string{"node"}, 10_000)}
				c.Spec.Scheduling = &api.Scheduling{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{not}}}},
				}}}
			},
			step: update,
			want: slices.Concat(static, metadata),
			err:  errInvalid,
		},
		"CompactionServed": {
			reason: "nor is a cluster stalled that has served with a compaction that never ends",
			cluster: func(c *api.EtcdCluster) {
				c.Spec.Options = &api.Options{Flags: map[string]string{"compaction-batch-limit": "-1"}}
			},
			seen: func(seen *observed) {
				metav1.SetMetaDataAnnotation(&seen.claims["db-1"].ObjectMeta, api.AnnotationServed, `{"version":"3.6.16","options":{"flags":{"compaction-batch-limit":"-1"}}}`)
			},
			step: membership.Step{Action: membership.None, Reason: membership.Healthy},
			want: slices.Concat(static, metadata),
		},
		"StopRefused": {
			reason: "without the intent nothing goes; metadata follows",
			step:   membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-2"}},
			refuse: func(w write) error {
				if w == status {
					return forbidden
				}
				return nil
			},
			want: slices.Concat(static, metadata),
			err:  forbidden,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			c.Status.ClusterID = seen.ID().String()
			var live []client.Object
			for _, claim := range seen.claims {
				live = append(live, claim)
			}
			if c.DeletionTimestamp == nil {
				live = append(live, c)
			}
			s := newStub(t, tc.refuse, live...)
			if tc.busy {
				s.MaxChanging, s.changing.taken = 1, map[types.NamespacedName]bool{{Namespace: "ns", Name: "other"}: true}
			}
			err := s.act(t.Context(), c, seen, tc.step)
			if invalid := (&invalidError{}); errors.As(err, &invalid) {
				err = errInvalid
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			want := slices.Clone(tc.want)
			slices.SortFunc(want, compareWrites)
			if diff := cmp.Diff(want, s.sorted()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// errBlocked is what is wrong with certificates.
var errBlocked = &certificatesError{api.ReasonCertificates, "the Secret is missing"}

// errInvalid stands for any invalidError.
var errInvalid = errors.New("the spec cannot be rendered")

// TestAdmits: the Service for clients leads to the members from when it may on.
func TestAdmits(t *testing.T) {
	c := newCluster()
	earlier, selector := render.Selector(c), render.Selector(c)
	selector[api.LabelClients] = api.ClientsIn
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.ClientServiceName(), UID: "service", Labels: render.Labels(c, ""),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: api.SchemeGroupVersion.String(), Kind: "EtcdCluster", Name: c.Name, UID: c.UID, Controller: new(true)}},
		},
	}
	leading := service.DeepCopy()
	leading.Spec.Selector = selector
	shut := render.Selector(c)
	shut[api.LabelClients] = api.ClientsShut
	closed := service.DeepCopy()
	closed.Spec.Selector = shut
	leadingAll := service.DeepCopy()
	leadingAll.Spec.Selector = earlier
	unlabelled := func(seen *observed) {
		for _, pod := range seen.pods {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	}
	notFenced := func(seen *observed) {
		seen.pods["db-1"].Annotations = map[string]string{api.AnnotationInitialClusterState: render.StateNew}
	}
	noQuorum := func(seen *observed) { seen.Reach = membership.ReachSome }
	cases := map[string]struct {
		reason string
		live   []client.Object
		cached []client.Object // nil: as they are
		latch  string
		seen   func(*observed)
		phase  api.RestorePhase // of a restore in place; empty: there is none
		since  string           // resource version of the EtcdCluster by now; empty: as it was seen
		want   map[string]string
		err    error
	}{
		"NotThere":   {reason: "a client that is early is refused at an address that is the cluster's", want: nil},
		"NotFormed":  {reason: "no client may write to a half-made cluster", live: []client.Object{service}, want: nil},
		"NotFenced":  {reason: "nor while a member would still start empty over a lost disk", latch: "c1", live: []client.Object{service}, seen: notFenced, want: nil},
		"NoQuorum":   {reason: "nor before a quorum has answered", latch: "c1", live: []client.Object{service}, seen: noQuorum, want: nil},
		"Formed":     {reason: "then they may", latch: "c1", live: []client.Object{service}, want: selector},
		"Restoring":  {reason: "clients are shut out while the cluster is restored in place, and EndpointSlices of a Service without a selector would stay", phase: api.RestoreRestoring, live: []client.Object{leading}, want: shut},
		"NoService":  {reason: "one that was deleted has no EndpointSlices", phase: api.RestoreRestoring, want: nil},
		"Reverting":  {reason: "and while that is taken back", phase: api.RestoreReverting, live: []client.Object{leading}, want: shut},
		"StaysShut":  {reason: "and from then on", phase: api.RestoreRestoring, live: []client.Object{closed}, want: shut},
		"Copied":     {reason: "and until no new member would be restored once more", phase: api.RestoreCompleted, latch: "c2", live: []client.Object{closed}, seen: notFenced, want: shut},
		"Restored":   {reason: "and let in again then", phase: api.RestoreCompleted, latch: "c2", live: []client.Object{closed}, want: selector},
		"OldShut":    {reason: "nor one that finds them shut out", latch: "c1", since: "8", live: []client.Object{closed}, want: nil, err: apply.ErrChanged},
		"OldCluster": {reason: "an operator that does not know of the restore yet does not let them in", latch: "c1", since: "8", live: []client.Object{service}, want: nil, err: apply.ErrChanged},
		"Earlier":    {reason: "Pods of an earlier release are led to as they were, until they have the label", latch: "c1", live: []client.Object{leadingAll}, seen: unlabelled, want: earlier},
		"LostQuorum": {reason: "and it stays so, for the members to be reached as soon as they are ready", latch: "c1", live: []client.Object{leading}, seen: noQuorum, want: selector},
		"OldCache":   {reason: "nor is that taken back by an operator that does not know of it yet", live: []client.Object{leading}, cached: []client.Object{service}, want: selector},
		"Woken":      {reason: "and while it is started again", latch: "c1", live: []client.Object{leading}, seen: func(seen *observed) { *seen = observed{} }, want: selector},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.ResourceVersion = tc.latch, "7"
			if tc.phase != "" {
				c.Status.Restore = &api.ClusterRestore{Phase: tc.phase}
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			now := c.DeepCopy()
			now.ResourceVersion = order.Or(tc.since, c.ResourceVersion)
			live := append([]client.Object{now}, tc.live...)
			s := newStub(t, nil, live...)
			if tc.cached != nil {
				s = newStub(t, nil, tc.cached...)
				s.Reader = newStub(t, nil, live...).Client
			}
			if _, err := s.applyStatic(t.Context(), c, seen, membership.Step{Action: membership.None}, true); !errors.Is(err, tc.err) {
				t.Fatalf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, s.selectors[c.ClientServiceName()]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLetIn: a cluster is healthy to its users when the Service for clients leads to a member.
func TestLetIn(t *testing.T) {
	rest := membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "3 healthy members"}
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	besides := func(since time.Time, names ...string) func(*observed) {
		return func(seen *observed) {
			for _, name := range names {
				withSidecar(seen.pods[name], since)
			}
		}
	}
	kept := "etcd serves, and the Service for clients has no ready endpoint, because of other containers or readiness gates: " +
		"db-0 (its container proxy is not ready); db-1 (its container proxy is not ready); db-2 (its container proxy is not ready)"
	waiting := func(reason membership.Reason, message string) membership.Step {
		return membership.Step{Action: membership.Wait, Reason: reason, Message: message}
	}
	starting := waiting(membership.Starting, "the members serve; until the kubelet has found one of them ready, the Service for clients leads to none")
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		want   membership.Step
	}{
		"AllKeptOut": {
			reason: "etcd is well, and no client reaches it",
			seen:   besides(now, "db-0", "db-1", "db-2"),
			want:   waiting("PodsNotReady", kept),
		},
		"AllKeptOutForLong": {
			reason: "a person has to mend what is beside etcd",
			seen:   besides(now.Add(-2*time.Minute), "db-0", "db-1", "db-2"),
			want: membership.Step{
				Action: membership.Stall, Reason: "PodsNotReady",
				Message: kept + ". Repair these containers and readiness gates; where an admission policy adds them, change the policy, and then delete one Pod after the other",
			},
		},
		"SomeKeptOut": {
			reason: "a member has yet to be found ready, and may be soon",
			seen:   besides(now, "db-0", "db-2"),
			want:   starting,
		},
		"TwoKeptOut": {
			reason: "clients reach one",
			seen: func(seen *observed) {
				besides(now, "db-0", "db-2")(seen)
				seen.pods["db-1"].Status.Conditions = ready
			},
			want: rest,
		},
		"OneReady": {
			reason: "clients reach one, and through it all",
			seen:   func(seen *observed) { seen.pods["db-1"].Status.Conditions = ready },
			want:   rest,
		},
		"NoneReady": {
			reason: "a client that comes now is refused, though etcd serves",
			want:   starting,
		},
		"ReadyAndTerminating": {
			reason: "the Service leads to no Pod that is going",
			seen: func(seen *observed) {
				seen.pods["db-1"].Status.Conditions, seen.pods["db-1"].DeletionTimestamp = ready, new(metav1.Now())
			},
			want: starting,
		},
		"Forgetful": {
			reason: "a Pod that would start over on an empty disk must be told otherwise first",
			seen: func(seen *observed) {
				seen.pods["db-1"].Status.Conditions = ready
				seen.pods["db-1"].Annotations = map[string]string{api.AnnotationInitialClusterState: render.StateNew}
			},
			want: waiting(membership.Bootstrapping, "the cluster has formed; clients are let in once its Pods are told to find their data at every later start"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID = "c1"
			if tc.seen != nil {
				tc.seen(&seen)
			}
			got := letIn(c, seen, rest, now.Add(-time.Minute))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
