package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// changing is a member that is asked for changes.
type changing struct {
	asked
	at   string
	take func(request string) error
}

func (e changing) AddLearner(_ context.Context, peerURL string) error {
	return e.take("add " + peerURL + " at " + e.at)
}
func (e changing) Promote(_ context.Context, id membership.ID) error {
	return e.take("promote " + id.String() + " at " + e.at)
}
func (e changing) Remove(_ context.Context, id membership.ID) error {
	return e.take("remove " + id.String() + " at " + e.at)
}
func (e changing) MoveLeader(_ context.Context, to membership.ID) error {
	return e.take("move to " + to.String() + " at " + e.at)
}
func (e changing) Disarm(_ context.Context, kind membership.AlarmKind, id membership.ID) error {
	return e.take("disarm " + string(kind) + " of " + id.String() + " at " + e.at)
}

func (e changing) Downgrade(_ context.Context, to membership.Version) error {
	return e.take("downgrade to " + to.String() + " at " + e.at)
}
func (e changing) CancelDowngrade(context.Context) error {
	return e.take("cancel downgrade at " + e.at)
}

// objects of the world, as an API server has them.
func (w world) objects() []client.Object {
	objects := []client.Object{w.cluster.DeepCopy()}
	for _, pod := range w.pods {
		objects = append(objects, pod.DeepCopy())
	}
	for _, claim := range w.claims {
		objects = append(objects, claim.DeepCopy())
	}
	return objects
}

// address gives each Pod the address that dial knows it by.
func (w world) address() {
	for name, pod := range w.pods {
		pod.Status.PodIP = name
	}
}

// look is what an operator observes of the world, and the stub through which it does.
func (w world) look(t *testing.T) (*stub, observed) {
	t.Helper()
	return w.lookThrough(t, nil)
}

// lookThrough is the same, through an API server that refuses some writes and has more objects.
func (w world) lookThrough(t *testing.T, refuse func(write) error, more ...client.Object) (*stub, observed) {
	t.Helper()
	s := newStub(t, refuse, append(w.objects(), more...)...)
	s.Dial = w.dial(nil)
	s.proving.look(client.ObjectKeyFromObject(w.cluster), nil, time.Now().Add(-time.Hour)) // it has looked before
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	return s, seen
}

// noChanges is a policy that takes no change of a Pod, and does not let it be deleted.
func noChanges(x write) error {
	if x.Kind == "Pod" && (x.Verb == "delete" || x.Verb == "try") {
		return forbiddenBy("pods", x.Name, "no changes before Monday")
	}
	return nil
}

// dial reaches the members of the world; take gets what they are asked for.
func (w world) dial(take func(string) error) membership.Dialer {
	return func(host string, _ int) (membership.Client, error) {
		return changing{asked: asked{etcd: etcd{endpoint: w.asked.endpoints[host], members: w.asked.members}}, at: host, take: take}, nil
	}
}

// spare puts a prepared volume for a member to come into the world.
func (w world) spare(name string) {
	w.claims[name] = newClaim(name)
	w.claims[name].Annotations[api.AnnotationJoin] = api.JoinPending
	w.claims[name].Spec = w.claims["db-0"].Spec
	w.pods[name] = w.pod(name)
	delete(w.pods[name].Annotations, api.AnnotationInitialCluster)
	delete(w.pods[name].Annotations, api.AnnotationInitialClusterState)
	w.pods[name].Annotations[api.AnnotationProvisions] = "true"
	w.pods[name].Status = corev1.PodStatus{PodIP: name, ContainerStatuses: etcdStatus(corev1.ContainerStatus{
		State: waiting("CreateContainerConfigError", "missing value for "+render.EnvInitialClusterState),
	})}
}

// learner makes db-3 a learner that follows the leader and has caught up.
func (w *world) learner() {
	const id membership.ID = 0xa3
	w.claims["db-3"] = newClaim("db-3")
	w.claims["db-3"].Annotations = map[string]string{
		api.AnnotationClusterID: "c0", api.AnnotationMemberID: id.String(), api.AnnotationVersion: "3.6.16", api.AnnotationJoin: id.String(),
	}
	w.claims["db-3"].Spec = w.claims["db-0"].Spec
	w.pods["db-3"] = w.pod("db-3")
	endpoint := w.asked.endpoints["db-0"]
	endpoint.MemberID, endpoint.Learner = id, true
	w.asked.endpoints["db-3"] = endpoint
	w.asked.members = append(w.asked.members, membership.Member{
		ID: id, Name: "db-3", PeerURLs: []string{w.cluster.PeerURL("db-3")}, Learner: true,
	})
}

// lead makes a member the leader.
func (w world) lead(name string) {
	leader := w.asked.endpoints[name].MemberID
	for n, e := range w.asked.endpoints {
		e.Leader = leader
		w.asked.endpoints[n] = e
	}
}

// TestChangeMembership goes from a world to what etcd is asked for. What is seen the second time is
// the same world, or what has become of it since.
func TestChangeMembership(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "etcdclusters"}, "db", errors.New("changed"))
	later := fmt.Errorf("etcd: %w", membership.ErrLater)
	refused := errors.New("etcd: no")
	intended := []write{{Verb: "apply", Kind: "status"}}
	stopped := func(name string) write { return write{Verb: "delete", Kind: "Pod", Name: name, UID: "pod-of-" + name} }
	size := func(w *world, n int32) { w.cluster.Spec.Replicas = &n }
	growing := func(w *world) { size(w, 4); w.spare("db-3") }
	shrinking := func(w *world) { size(w, 1) }
	removal := []string{"Normal ScalingDown removing db-2: spec.replicas is 1", "Normal ScalingDown Deleted Pod db-2"}

	type result struct {
		Step     membership.Action
		Requests []string
		Writes   []write
		Events   []string
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		since  func(*world) // what happens between the decision and the second look
		refuse func(write) error
		etcd   error
		want   result
		err    error
	}{
		"AddLearner": {
			reason: "by its own peer URL, at the leader", given: growing,
			want: result{membership.AddLearner, []string{"add http://db-3.db.ns.svc:2380 at db-1"}, intended, []string{"Normal ScalingUp adding db-3 as a learner"}},
		},
		"Promote": {
			reason: "only the leader knows how far a learner is", given: func(w *world) { size(w, 4); w.learner(); w.lead("db-2") },
			want: result{membership.Promote, []string{"promote a3 at db-2"}, intended, []string{"Normal Joining making the learner db-3 a voter"}},
		},
		"Remove": {
			reason: "one that does not lead, at the leader; its process, which ends by itself, is not started again", given: shrinking,
			want: result{membership.Remove, []string{"remove a2 at db-1"}, append(intended, stopped("db-2")), removal},
		},
		"RemoveTerminating": {
			reason: "its Pod is going already",
			given: func(w *world) {
				shrinking(w)
				delete(w.asked.endpoints, "db-2")
				w.pods["db-2"].DeletionTimestamp, w.pods["db-2"].Finalizers = new(metav1.Now()), []string{"example.com/x"}
			},
			want: result{membership.Remove, []string{"remove a2 at db-1"}, intended, removal[:1]},
		},
		"RemoveUnstarted": {
			reason: "a learner that has yet to start takes its volume and its name with it, and its Pod, unless that was let start since",
			given: func(w *world) {
				w.spare("db-3")
				w.asked.members = append(w.asked.members, membership.Member{ID: 0xa3, PeerURLs: []string{w.cluster.PeerURL("db-3")}, Learner: true})
			},
			want: result{
				membership.Remove, []string{"remove a3 at db-1"},
				append(intended, write{"apply", "PersistentVolumeClaim", "db-3", "claim-of-db-3", "5"}, write{"delete", "Pod", "db-3", "pod-of-db-3", "5"}),
				[]string{"Normal ScalingDown removing the learner db-3, which is not needed any more", "Normal ScalingDown Deleted Pod db-3"},
			},
		},
		"RemoveUnstartedGoing": {
			reason: "a volume that is being deleted is no other member's, and nothing is written to it",
			given: func(w *world) {
				w.spare("db-3")
				w.claims["db-3"].DeletionTimestamp, w.claims["db-3"].Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
				w.asked.members = append(w.asked.members, membership.Member{ID: 0xa3, PeerURLs: []string{w.cluster.PeerURL("db-3")}, Learner: true})
			},
			want: result{
				membership.Remove, []string{"remove a3 at db-1"},
				append(intended, write{"delete", "Pod", "db-3", "pod-of-db-3", "5"}),
				[]string{"Normal ScalingDown removing the learner db-3, which is not needed any more", "Normal ScalingDown Deleted Pod db-3"},
			},
		},
		"MoveLeader": {
			reason: "the leader itself is asked to hand it over", given: func(w *world) { shrinking(w); w.lead("db-2") },
			want: result{membership.MoveLeader, []string{"move to a0 at db-2"}, intended, []string{"Normal ScalingDown moving the leadership from db-2 to db-0"}},
		},
		"LeaderSilent": {
			reason: "where the leader does not answer here, another one passes it on",
			given:  func(w *world) { size(w, 2); delete(w.asked.endpoints, "db-1") },
			want: result{
				membership.Remove, []string{"remove a1 at db-0"}, append(intended, stopped("db-1")),
				[]string{"Normal ScalingDown removing db-1: spec.replicas is 2", "Normal ScalingDown Deleted Pod db-1"},
			},
		},
		"Intended": {
			reason: "an earlier pass has written it down, and its request may not have come through",
			given: func(w *world) {
				shrinking(w)
				w.cluster.Status.Operation = operation(membership.Remove, "a2", 0, target("db-2", "claim-of-db-2"))
			},
			want: result{membership.Remove, []string{"remove a2 at db-1"}, []write{stopped("db-2")}, removal},
		},
		"InFlight": {
			reason: "what comes of another request is not known yet",
			given: func(w *world) {
				shrinking(w)
				w.cluster.Status.Operation = theirs(operation(membership.AddLearner, "", 0, target("db-3", "")))
			},
			want: result{Step: membership.Remove}, err: errInFlight,
		},
		"Conflict": {
			reason: "another operator has written first", given: shrinking, refuse: func(write) error { return conflict },
			want: result{Step: membership.Remove}, err: conflict,
		},
		"ClusterChanged": {
			reason: "another writer has written to the EtcdCluster since", given: shrinking, since: func(w *world) { w.cluster.ResourceVersion = "2" },
			want: result{Step: membership.Remove, Writes: intended}, err: apply.ErrChanged,
		},
		"ClusterRecreated": {
			reason: "it is another one of the same name", given: shrinking, since: func(w *world) { w.cluster.UID = "another" },
			want: result{Step: membership.Remove, Writes: intended}, err: apply.ErrChanged,
		},
		"SpareGone": {
			reason: "the volume of the member to come is not there any more", given: growing, since: func(w *world) { delete(w.claims, "db-3") },
			want: result{Step: membership.AddLearner, Writes: intended}, err: apply.ErrChanged,
		},
		"LearnerUnfenced": {
			reason: "as a voter it might start empty", given: func(w *world) { size(w, 4); w.learner() },
			since: func(w *world) { delete(w.pods["db-3"].Annotations, api.AnnotationInitialCluster) },
			want:  result{Step: membership.Promote, Writes: intended}, err: apply.ErrChanged,
		},
		"AnotherDown": {
			reason: "without both there is no quorum", given: func(w *world) { size(w, 2) },
			since: func(w *world) { delete(w.asked.endpoints, "db-0") },
			want:  result{Step: membership.Remove, Writes: intended}, err: apply.ErrChanged,
		},
		"VolumeLost": {
			reason: "it is another member that must go first", given: shrinking,
			since: func(w *world) { delete(w.claims, "db-0"); delete(w.pods, "db-0"); delete(w.asked.endpoints, "db-0") },
			want:  result{Step: membership.Remove, Writes: intended}, err: apply.ErrChanged,
		},
		"LeaderMoved": {
			reason: "the one that was to be removed leads now", given: shrinking, since: func(w *world) { w.lead("db-2") },
			want: result{Step: membership.Remove, Writes: intended}, err: apply.ErrChanged,
		},
		"Later": {
			reason: "it was no change, and no event tells of one", given: growing, etcd: later,
			want: result{membership.AddLearner, []string{"add http://db-3.db.ns.svc:2380 at db-1"}, intended, nil}, err: membership.ErrLater,
		},
		"Refused": {
			reason: "the error is handed on", given: shrinking, etcd: refused,
			want: result{membership.Remove, []string{"remove a2 at db-1"}, intended, nil}, err: refused,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			var got result
			take := func(request string) error {
				got.Requests = append(got.Requests, request)
				return tc.etcd
			}
			s := newStub(t, tc.refuse, w.objects()...)
			s.Dial = w.dial(take)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			c := w.cluster.DeepCopy()
			if tc.since != nil {
				w.asked.endpoints = maps.Clone(w.asked.endpoints)
				tc.since(&w)
				s.Reader, s.Dial = newStub(t, nil, w.objects()...).Client, w.dial(take)
			}
			if err := s.changeMembership(t.Context(), c, seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			got.Step, got.Writes, got.Events = step.Action, s.writes, s.told()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
