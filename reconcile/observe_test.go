package reconcile

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

func TestBelongs(t *testing.T) {
	type result struct{ Foreign, Terminating bool }
	dying := func(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		o.DeletionTimestamp = new(metav1.Now())
		return o
	}
	cases := map[string]struct {
		reason string
		object client.Object
		want   result
	}{
		"Ours":             {reason: "it has this very owner", object: ownedBy("cluster", newClaim("db-0"))},
		"OursTerminating":  {reason: "it is going", object: dying(ownedBy("cluster", newClaim("db-0"))), want: result{Terminating: true}},
		"Retained":         {reason: "a volume that outlived its EtcdCluster has no owner, and is taken over", object: newClaim("db-0")},
		"RetainedGoing":    {reason: "a user deletes the retained volume", object: dying(newClaim("db-0")), want: result{Terminating: true}},
		"EarlierCluster":   {reason: "the garbage collector is about to delete what an earlier EtcdCluster of this name owned", object: ownedBy("earlier", newClaim("db-0")), want: result{Terminating: true}},
		"OtherCluster":     {reason: "another EtcdCluster's", object: owned(newClaim("db-0"), api.SchemeGroupVersion.String(), "EtcdCluster", "other", "other"), want: result{Foreign: true}},
		"OtherKind":        {reason: "another kind's, which has the same name", object: owned(newClaim("db-0"), "apps/v1", "StatefulSet", "db", "set"), want: result{Foreign: true}},
		"OtherKindGoing":   {reason: "and it is going", object: dying(owned(newClaim("db-0"), "apps/v1", "StatefulSet", "db", "set")), want: result{Foreign: true, Terminating: true}},
		"OtherGroupsKind":  {reason: "a kind of the same name in another group", object: owned(newClaim("db-0"), "example.com/v1", "EtcdCluster", "db", "x"), want: result{Foreign: true}},
		"OwnerWithoutCtrl": {reason: "an owner that does not control it has no say", object: plainOwner(newClaim("db-0"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got result
			got.Foreign, got.Terminating = belongs(newCluster(), tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func plainOwner(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "tracker", UID: "x"}}
	return o
}

func TestVolume(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        membership.Volume
	}{
		"Bare": {reason: "nothing is written on it", want: membership.Volume{UID: "claim-of-db-0"}},
		"Recorded": {
			reason: "everything that Quorate writes is read again",
			annotations: map[string]string{
				api.AnnotationBootstrap: "cluster/3", api.AnnotationVersion: "3.6.16",
				api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a0",
			},
			want: membership.Volume{
				UID: "claim-of-db-0", ClusterID: 0xc0, MemberID: 0xa0,
				First: membership.First{Token: "cluster", Size: 3}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
			},
		},
		"Itself": {
			reason:      "its record names this very object",
			annotations: map[string]string{api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a0", api.AnnotationVolumeUID: "claim-of-db-0"},
			want:        membership.Volume{UID: "claim-of-db-0", ClusterID: 0xc0, MemberID: 0xa0},
		},
		"Restored": {
			reason:      "its record names another object",
			annotations: map[string]string{api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a0", api.AnnotationVolumeUID: "earlier"},
			want:        membership.Volume{UID: "claim-of-db-0", ClusterID: 0xc0, MemberID: 0xa0, Replaced: true},
		},
		"RestoredUnrecorded": {
			reason:      "there is no record of what is on it",
			annotations: map[string]string{api.AnnotationVolumeUID: "earlier"},
			want:        membership.Volume{UID: "claim-of-db-0"},
		},
		"Garbage": {
			reason: "what cannot be read proves nothing",
			annotations: map[string]string{
				api.AnnotationBootstrap: "garbage", api.AnnotationVersion: "latest",
				api.AnnotationClusterID: "0xc0", api.AnnotationMemberID: "-1",
			},
			want: membership.Volume{UID: "claim-of-db-0"},
		},
		"NegativeSize": {reason: "no first start has so many members", annotations: map[string]string{api.AnnotationBootstrap: "cluster/-1"}, want: membership.Volume{UID: "claim-of-db-0"}},
		"HugeSize":     {reason: "no first start has so many members, and looking for each would take for ever", annotations: map[string]string{api.AnnotationBootstrap: "cluster/2000000000"}, want: membership.Volume{UID: "claim-of-db-0"}},
		"HugeBase": {
			reason:      "no member has such an ordinal",
			annotations: map[string]string{api.AnnotationBootstrap: "cluster/3/1000000"},
			want:        membership.Volume{UID: "claim-of-db-0"},
		},
		"HugeNumbers": {
			reason:      "more than 64 bits",
			annotations: map[string]string{api.AnnotationBootstrap: "cluster/99999999999999999999", api.AnnotationMemberID: strings.Repeat("f", 17)},
			want:        membership.Volume{UID: "claim-of-db-0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := newClaim("db-0")
			claim.Annotations = tc.annotations
			if diff := cmp.Diff(tc.want, volume(newCluster(), claim)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// world is what facts are made of.
type world struct {
	t       *testing.T
	cluster *api.EtcdCluster
	pods    map[string]*corev1.Pod
	claims  map[string]*corev1.PersistentVolumeClaim
	asked   answers
}

// serving is the world in which the facts are those of healthy.
func serving(t *testing.T) world {
	t.Helper()
	w := world{t: t, cluster: newCluster(), pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	w.cluster.Status.ClusterID = "c0"
	seen := healthy()
	w.asked = answers{members: seen.Members, endpoints: map[string]membership.Endpoint{}}
	for _, i := range seen.Instances {
		w.cluster.Status.Members = append(w.cluster.Status.Members, api.MemberStatus{Name: i.Name, ID: i.ID.String()})
		w.asked.endpoints[i.Name] = i.Endpoint
		claim := newClaim(i.Name)
		claim.Annotations = map[string]string{
			api.AnnotationClusterID: "c0", api.AnnotationMemberID: i.ID.String(),
			api.AnnotationBootstrap: "cluster/3", api.AnnotationVersion: "3.6.16",
		}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		w.claims[i.Name] = claim
		w.pods[i.Name] = w.pod(i.Name)
	}
	return w
}

// pod as render makes it once the cluster has formed, running and ready.
func (w world) pod(name string) *corev1.Pod {
	w.t.Helper()
	m := render.Member{
		Name: name, Version: "3.6.16", InitialCluster: render.Resume(w.cluster, name), InitialClusterState: render.StateExisting,
	}
	if claim := w.claims[name]; claim != nil { // a member of the first start
		m.Token, _, _ = strings.Cut(claim.Annotations[api.AnnotationBootstrap], "/")
	}
	ac, err := render.Pod(w.cluster, m)
	if err != nil {
		w.t.Fatal(err)
	}
	pod := newPod(name)
	pod.Annotations = ac.Annotations
	raw, err := json.Marshal(ac.Spec)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &pod.Spec); err != nil {
		w.t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: render.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

// changed is a member whose image was changed in place.
func (w world) changed(name, version string) {
	pod := w.pods[name]
	pod.Annotations[api.AnnotationPrevious] = pod.Status.ContainerStatuses[0].ContainerID + " " + pod.Spec.Containers[0].Image
	w.asksFor(name, render.Image(w.cluster, version))
}

// asksFor is a Pod for which Quorate has asked for an image.
func (w world) asksFor(name, image string) {
	pod := w.pods[name]
	_, around, _ := strings.Cut(pod.Annotations[api.AnnotationApplied], " ")
	pod.Annotations[api.AnnotationApplied], pod.Spec.Containers[0].Image = image+" "+around, image
}

// putBack is a member that was rolled back after it had failed to come up with an image from
// elsewhere, and whose container the kubelet has yet to start from the one that it had.
func (w world) putBack(name string) {
	w.cluster.Spec.Image = &api.Image{Repository: "example.com/etcd"}
	w.cluster.Status.FailedChange = &api.FailedChange{Generation: w.cluster.Generation, Message: "it did not work"}
	w.pods[name].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{Image: "x", State: waiting("ImagePullBackOff", "")})
	delete(w.asked.endpoints, name)
}

// failed is what is different about the facts then.
func failed(o *membership.Observed) {
	o.Instances[0].Pod.Ready = false
	i := &o.Instances[0]
	i.Endpoint = membership.Endpoint{}
	i.Pod.Problem, i.Pod.NeverRan, i.Pod.Failing, i.Pod.ImageUnavailable = "cannot pull the image "+image36, true, true, true
	i.Pod.Overdue = true
	for n := range o.Instances {
		o.Instances[n].Pod.Change, o.Instances[n].Pod.Parts = membership.ChangeImage, []string{"image"}
	}
}

// TestFacts mutates a healthy world, and says what is different about the facts then.
func TestFacts(t *testing.T) {
	const elsewhere = "http://10.0.0.9:2380"
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	silent := func(o *membership.Observed, indices ...int) {
		for _, n := range indices {
			o.Instances[n].Endpoint = membership.Endpoint{}
		}
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   func(*membership.Observed)
	}{
		"Healthy": {reason: "all sides agree", given: func(*world) {}, want: func(*membership.Observed) {}},
		"Nothing": {
			reason: "those that the spec asks for are there by name",
			given:  func(w *world) { *w = world{cluster: newCluster()} },
			want: func(o *membership.Observed) {
				*o = membership.Observed{
					Fresh:     fresh(3),
					Instances: []membership.Instance{{Name: "db-0"}, {Name: "db-1", Ordinal: 1}, {Name: "db-2", Ordinal: 2}},
				}
			},
		},
		"NamesOfOthers": {
			reason: "what carries the label and a name that no member can have is passed over",
			given: func(w *world) {
				w.pods["db-x"], w.pods["db-01"], w.claims["other-0"] = newPod("db-x"), newPod("db-01"), newClaim("other-0")
				w.claims["db-99999999999"] = newClaim("db-99999999999")
			},
			want: func(*membership.Observed) {},
		},
		"HigherOrdinal": {
			reason: "a volume beyond the spec is known, and comes last",
			given: func(w *world) {
				w.claims["db-10"] = newClaim("db-10")
				w.claims["db-10"].Spec = w.claims["db-0"].Spec
			},
			want: func(o *membership.Observed) {
				o.Instances = append(o.Instances, membership.Instance{Name: "db-10", Ordinal: 10, Volume: membership.Volume{UID: "claim-of-db-10"}})
				o.Fresh = fresh(11)
			},
		},
		"Fewer": {
			reason: "what the spec no longer asks for is still there",
			given:  func(w *world) { w.cluster.Spec.Replicas = new(int32(1)) },
			want:   func(*membership.Observed) {},
		},
		"FirstStartOfMore": {
			reason: "those that a first start began with are there by name, though the spec asks for fewer now",
			given: func(w *world) {
				w.claims = map[string]*corev1.PersistentVolumeClaim{"db-0": w.claims["db-0"]}
				w.cluster.Spec.Replicas, w.cluster.Status, w.asked, w.pods = new(int32(1)), api.EtcdClusterStatus{}, answers{}, nil
			},
			want: func(o *membership.Observed) {
				volume := o.Instances[0].Volume
				*o = membership.Observed{Fresh: fresh(3), Instances: []membership.Instance{
					{Name: "db-0", ID: 0xa0, Volume: volume}, {Name: "db-1", Ordinal: 1}, {Name: "db-2", Ordinal: 2},
				}}
			},
		},
		"Bootstrapping": {
			reason: "the intent of a first start names the volumes it was made with",
			given: func(w *world) {
				*w = world{cluster: newCluster()}
				w.cluster.Spec.Replicas = new(int32(1))
				w.cluster.Status.Operation = &api.Operation{Step: "Bootstrap", Targets: []api.OperationTarget{
					{Member: "db-0", UID: "x"}, {Member: "db-1", UID: "y"},
				}}
			},
			want: func(o *membership.Observed) {
				*o = membership.Observed{
					Bootstrapping: map[string]string{"db-0": "x", "db-1": "y"}, Fresh: fresh(2),
					Instances: []membership.Instance{{Name: "db-0"}, {Name: "db-1", Ordinal: 1}},
				}
			},
		},
		"OtherOperation": {
			reason: "the intent to stop is no first start",
			given: func(w *world) {
				w.cluster.Status.Operation = &api.Operation{Step: "Stop", Targets: []api.OperationTarget{{Member: "db-0", UID: "x"}}}
			},
			want: func(*membership.Observed) {},
		},
		"NoQuorum": {
			reason: "without a list the status remembers the IDs",
			given:  func(w *world) { w.asked.members = nil; delete(w.asked.endpoints, "db-2") },
			want: func(o *membership.Observed) {
				o.Reach, o.Members = membership.ReachSome, nil
				silent(o, 2)
			},
		},
		"NoAnswer": {
			reason: "without a list and a status the volumes remember them",
			given:  func(w *world) { w.asked = answers{}; w.cluster.Status = api.EtcdClusterStatus{} },
			want: func(o *membership.Observed) {
				o.Reach, o.Members, o.ClusterID, o.Remembered = membership.ReachNone, nil, 0, false
				silent(o, 0, 1, 2)
			},
		},
		"NameNotYetKnown": {
			reason: "a member that has never started has a peer URL and no name",
			given: func(w *world) {
				w.asked.members[2].Name = ""
				w.cluster.Status.Members = nil
				w.claims["db-2"].Annotations = nil
			},
			want: func(o *membership.Observed) {
				o.Members[2].Name, o.Remembered = "", false
				o.Instances[2].Volume = membership.Volume{UID: "claim-of-db-2"}
			},
		},
		"PeerURLChangedByHand": {
			reason: "then its name tells",
			given:  func(w *world) { w.asked.members[2].PeerURLs = []string{elsewhere} },
			want:   func(o *membership.Observed) { o.Members[2].PeerURLs = []string{elsewhere} },
		},
		"Impostor": {
			reason: "a foreign member that calls itself like one of ours does not take its place",
			given: func(w *world) {
				w.asked.members = append(w.asked.members, membership.Member{ID: 0xff, Name: "db-1", PeerURLs: []string{elsewhere}})
			},
			want: func(o *membership.Observed) {
				o.Members = append(o.Members, membership.Member{ID: 0xff, Name: "db-1", PeerURLs: []string{elsewhere}})
			},
		},
		"ListBeatsStatus": {
			reason: "etcd knows its members best",
			given:  func(w *world) { w.cluster.Status.Members[0].ID = "ee"; w.cluster.Status.Members[1].ID = "garbage" },
			want:   func(*membership.Observed) {},
		},
		"AddressOfAnother": {
			reason: "two Pods have swapped their addresses, and their status does not yet say so: neither answer is theirs",
			given: func(w *world) {
				e := w.asked.endpoints
				e["db-0"], e["db-1"] = e["db-1"], e["db-0"]
			},
			want: func(o *membership.Observed) { silent(o, 0, 1) },
		},
		"AddressOfAnotherCluster": {
			reason: "a Pod's address has passed to a member of another cluster: no member answers, and no clusters are mixed",
			given: func(w *world) {
				w.asked = answers{endpoints: map[string]membership.Endpoint{"db-0": {ClusterID: 0xdd, MemberID: 0xd0, Leader: 0xd0}}}
			},
			want: func(o *membership.Observed) {
				o.Reach, o.Members = membership.ReachNone, nil
				silent(o, 0, 1, 2)
			},
		},
		"Pending": {
			reason: "volumes that are smaller than the spec asks for, and parts of it that Pods do not have, with what it takes",
			given: func(w *world) {
				w.cluster.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
				w.cluster.Spec.Storage.Size = resource.MustParse("2Gi")
			},
			want: func(o *membership.Observed) {
				for n := range o.Instances {
					o.Instances[n].Volume.Small = true
					p := &o.Instances[n].Pod
					p.Outdated, p.Change, p.Parts = true, membership.ChangePod, []string{"resources"}
				}
			},
		},
		"GrownByHand": {
			reason: "a volume that is larger than the spec says is nothing to carry out",
			given: func(w *world) {
				w.claims["db-0"].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
			},
			want: func(*membership.Observed) {},
		},
		"NewVersion": {
			reason: "a Pod runs what its volume ran last, whatever the spec says now, and it is told what takes it there",
			given:  func(w *world) { w.cluster.Spec.Version = "3.7.3" },
			want: func(o *membership.Observed) {
				for n := range o.Instances {
					o.Instances[n].Pod.Change, o.Instances[n].Pod.Parts = membership.ChangeImage, []string{"version"}
				}
			},
		},
		"NewVersionUnrecorded": {
			reason: "before its volume has run anything, it is to run what the spec says",
			given: func(w *world) {
				w.cluster.Spec.Version = "v3.6.15"
				w.claims["db-0"].Annotations = nil
			},
			want: func(o *membership.Observed) {
				o.Instances[0].Volume = membership.Volume{UID: "claim-of-db-0"}
				o.Instances[0].Pod.Outdated = true
				for n := range o.Instances { // db-0 has lost its token with its record; its Pod still has it
					o.Instances[n].Pod.Change, o.Instances[n].Pod.Parts = membership.ChangeImage, []string{"version"}
				}
			},
		},
		"Next": {
			reason: "what comes next on a volume is what its Pod is to run, and one that came from 3.5 is known",
			given: func(w *world) {
				w.cluster.Spec.Version = "3.7.3"
				w.claims["db-0"].Annotations[api.AnnotationNext] = "3.7.3"
				w.claims["db-1"].Annotations[api.AnnotationReplays] = "pod-of-db-1"
			},
			want: func(o *membership.Observed) {
				o.Instances[0].Volume.Next, o.Instances[1].Volume.Replays = membership.Version{Major: 3, Minor: 7, Patch: 3}, "pod-of-db-1"
				o.Instances[0].Pod.Outdated = true
				for n := range o.Instances {
					o.Instances[n].Pod.Change, o.Instances[n].Pod.Parts = membership.ChangeImage, []string{"version"}
				}
			},
		},
		"Changing": {
			reason: "its image was changed, and the container of before answers yet; what it runs now is no news",
			given: func(w *world) {
				w.cluster.Spec.Version = "3.6.17"
				w.changed("db-0", "3.6.17")
			},
			want: func(o *membership.Observed) {
				o.Instances[0].Pod.Version.Patch, o.Instances[0].Pod.Changing, o.Instances[0].Pod.Outdated = 17, true, true
				for n := range 2 {
					o.Instances[n+1].Pod.Change, o.Instances[n+1].Pod.Parts = membership.ChangeImage, []string{"version"}
				}
			},
		},
		"Rewritten": {
			reason: "a policy has pinned the image that was asked for, and the version is that of what was asked for",
			given: func(w *world) {
				w.managed()
				w.pods["db-0"].Spec.Containers[0].Image = "gcr.io/etcd-development/etcd@" + digest
			},
			want: func(*membership.Observed) {},
		},
		"Fails": {
			reason: "a Pod of another spec that does not run",
			given:  func(w *world) { w.putBack("db-0"); w.cluster.Status.FailedChange.Generation-- },
			want: func(o *membership.Observed) {
				failed(o)
				for n := range o.Instances {
					o.Instances[n].Pod.Outdated = true
				}
			},
		},
		"PutBack": {
			reason: "it has what it had before a change that does not work: no Pod is recreated with what the spec asks for",
			given:  func(w *world) { w.putBack("db-0") }, want: failed,
		},
		"PutBackAndBehind": {
			reason: "nor does that keep a Pod which runs another version than its volume is to be run by",
			given:  func(w *world) { w.putBack("db-0"); w.pods["db-0"].Spec.Containers[0].Image += "0" },
			want: func(o *membership.Observed) {
				failed(o)
				o.Instances[0].Pod.Outdated, o.Instances[0].Pod.Version.Patch, o.Instances[0].Pod.Parts = true, 160, []string{"image", "version"}
				o.Instances[0].Pod.Problem += "0"
			},
		},
		"Memory": {
			reason: "the Pod is the volume, and a claim of that name is none",
			given: func(w *world) {
				w.cluster.Spec.Storage.Medium = api.MediumMemory
				for name := range w.pods {
					w.pods[name] = w.pod(name)
					maps.Copy(w.pods[name].Annotations, w.claims[name].Annotations)
					delete(w.claims, name)
				}
			},
			want: func(o *membership.Observed) {
				for n := range o.Instances {
					o.Instances[n].Volume.UID = o.Instances[n].Pod.UID
				}
			},
		},
		"MemoryEnded": {
			reason: "the tmpfs of a Pod that has ended is gone",
			given: func(w *world) {
				w.cluster.Spec.Storage.Medium = api.MediumMemory
				w.pods = map[string]*corev1.Pod{"db-0": w.pod("db-0")}
				maps.Copy(w.pods["db-0"].Annotations, w.claims["db-0"].Annotations)
				w.pods["db-0"].Status = corev1.PodStatus{Phase: corev1.PodFailed}
				w.claims, w.asked = nil, answers{}
			},
			want: func(o *membership.Observed) {
				o.Reach, o.Members = membership.ReachNone, nil
				silent(o, 0, 1, 2)
				o.Instances[0].Pod = membership.Pod{
					UID: "pod-of-db-0", NeverRan: true, Ended: true, Problem: "has ended (Failed)", Overdue: true,
					Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
				}
				o.Instances[1].Pod, o.Instances[2].Pod = membership.Pod{}, membership.Pod{}
				for n := range o.Instances {
					o.Instances[n].Volume = membership.Volume{}
				}
			},
		},
		"Foreign": {
			reason: "whose a thing is shows on Pods and volumes",
			given: func(w *world) {
				owned(w.pods["db-0"], "apps/v1", "StatefulSet", "db", "set")
				owned(w.claims["db-1"], "apps/v1", "StatefulSet", "db", "set")
				ownedBy("earlier", w.pods["db-2"])
			},
			want: func(o *membership.Observed) {
				o.Instances[0].Pod.Foreign, o.Instances[1].Volume.Foreign, o.Instances[2].Pod.Terminating = true, true, true
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, want := serving(t), healthy().Observed
			tc.given(&w)
			tc.want(&want)
			got := facts(w.cluster, w.pods, w.claims, w.asked, limits{now: now, stallBefore: now.Add(-2 * time.Minute), replaceBefore: now.Add(-5 * time.Minute), unavailable: now})
			if diff := cmp.Diff(want, got, notSizes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// notSizes leaves out what TestSizes is about.
var notSizes = cmp.Options{
	cmpopts.IgnoreFields(membership.Volume{}, "Capacity"),
	cmpopts.IgnoreFields(membership.Pod{}, "Quota", "QuotaToBe"),
}
