package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
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

const agentImage = "registry.example/quorate:v1"

// restoringCluster is to start from a stored snapshot.
func restoringCluster() *api.EtcdCluster {
	c := newCluster()
	c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Store: &api.BackupStore{S3: &api.S3Store{Bucket: "backups", Prefix: "prod"}}}}
	return c
}

// searching is the Job that looks for the snapshot, as an API server has it.
func searching(t *testing.T, c *api.EtcdCluster) *batchv1.Job {
	t.Helper()
	want, err := render.FindJob(c, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	job := ownedBy("cluster", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-find", Namespace: "ns", UID: "job", ResourceVersion: "5", CreationTimestamp: metav1.Now()}})
	job.Annotations = want.Annotations
	return job
}

// searcher is its Pod, in which the agent has said that, with that exit code.
func searcher(code int32, said string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "db-find-x", Namespace: "ns", Labels: map[string]string{batchv1.ControllerUidLabel: "job"}, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	exit := &corev1.ContainerStateTerminated{ExitCode: code, Message: said}
	if code != 0 {
		exit.Reason = "Error"
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: render.ContainerFind, State: corev1.ContainerState{Terminated: exit}}}
	return pod
}

const manifestSaid = `{"manifest":{"format":1,"name":"db-monday","clusterID":"c9","etcdVersion":"3.6.16","revision":4711,"object":"db-monday.db.zst","size":1048576,"sha256":"5a","takenAt":"2026-11-23T07:50:00.5Z"},` +
	`"verification":{"format":1,"at":"2026-11-23T08:00:00Z"}}`

var monday = api.RestoredSnapshot{
	Name: "db-monday", SHA256: "5a", Location: "s3://backups/prod/db-monday.db.zst", ClusterID: "c9", EtcdVersion: "3.6.16", Revision: 4711, Size: 1 << 20,
	TakenAt: new(metav1.Date(2026, 11, 23, 7, 50, 0, 0, time.UTC)), VerifiedAt: new(metav1.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)),
}

// unreadable is what the agent says of a snapshot that is encrypted to others.
const unreadable = `{"manifest":{"name":"db-monday","encrypted":true},"error":{"reason":"Identity","message":"snapshot db-monday: it is encrypted"}}`

func identity(secret string) *api.AgeIdentity {
	return &api.AgeIdentity{SecretRef: api.SecretReference{Name: secret}}
}

func TestSearched(t *testing.T) {
	t.Parallel()
	job := func(t *testing.T, c *api.EtcdCluster) []client.Object { return []client.Object{searching(t, c)} }
	saying := func(pod *corev1.Pod) func(*testing.T, *api.EtcdCluster) []client.Object {
		return func(t *testing.T, c *api.EtcdCluster) []client.Object { return []client.Object{searching(t, c), pod} }
	}
	facts := membership.Snapshot{
		Name: "db-monday", SHA256: "5a", About: "revision 4711, taken 2026-11-23T07:50:00Z", Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Size: 1 << 20,
	}
	waits := searcher(0, "")
	waits.Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: render.ContainerFind, Image: agentImage, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}
	creating := waits.DeepCopy()
	creating.Status.ContainerStatuses[0].State.Waiting.Reason = "ContainerCreating"
	unbound := searcher(0, "")
	unbound.Status.ContainerStatuses = nil
	unbound.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
	}}
	unbound.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "backups"}}}}
	again := searcher(1, `{"error":{"reason":"NoSuchBucket","message":"the bucket backups does not exist"}}`)
	again.Status.ContainerStatuses[0].LastTerminationState = again.Status.ContainerStatuses[0].State
	again.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	cases := map[string]struct {
		reason  string
		cluster func(*api.EtcdCluster)
		objects func(*testing.T, *api.EtcdCluster) []client.Object
		want    membership.Search
		found   *api.RestoredSnapshot
	}{
		"NotBegun": {reason: "there is no Job"},
		"NotAsked": {
			reason:  "a cluster that begins empty looks for nothing",
			cluster: func(c *api.EtcdCluster) { c.Spec.Bootstrap = nil },
			objects: func(*testing.T, *api.EtcdCluster) []client.Object { return nil },
		},
		"RestoreInPlaceAsked": {
			reason:  "an EtcdRestore waits for the cluster to form, and does not keep it from that",
			cluster: func(c *api.EtcdCluster) { c.Status.Restore = inPhase(api.RestoreBlocked) },
			objects: saying(searcher(0, manifestSaid)), want: membership.Search{Begun: true, Found: facts}, found: &monday,
		},
		"Begun": {reason: "it takes some seconds", objects: job, want: membership.Search{Begun: true}},
		"Found": {
			reason: "what the manifest says", objects: saying(searcher(0, manifestSaid)),
			want: membership.Search{Begun: true, Found: facts}, found: &monday,
		},
		"Failed": {
			reason:  "the agent's words",
			objects: saying(searcher(1, `{"error":{"reason":"NoSuchBucket","message":"the bucket backups does not exist"}}`)),
			want:    membership.Search{Begun: true, Problem: "the bucket backups does not exist"},
		},
		"FailedAndTriedAgain": {
			reason: "they stay until there is something else to say", objects: saying(again),
			want: membership.Search{Begun: true, Problem: "the bucket backups does not exist"},
		},
		"NotVerified": {
			reason:  "one that was not verified is there, perhaps",
			objects: saying(searcher(1, `{"error":{"reason":"NotFound","message":"snapshot latest that was verified: not found"}}`)),
			want: membership.Search{Begun: true, Problem: "snapshot latest that was verified: not found; only a verified one is taken: " +
				"verify it (quorate snapshot verify), or set spec.bootstrap.restore.unverified to Allow"},
		},
		"NotThere": {
			reason:  "any would do, and there is none",
			cluster: func(c *api.EtcdCluster) { c.Spec.Bootstrap.Restore.Unverified = api.UnverifiedAllow },
			objects: saying(searcher(1, `{"error":{"reason":"NotFound","message":"snapshot latest: not found: the store has no snapshots"}}`)),
			want:    membership.Search{Begun: true, Problem: "snapshot latest: not found: the store has no snapshots"},
		},
		"OtherIdentity": {
			reason:  "the agent has found it, and cannot read it: which Secret that is",
			cluster: func(c *api.EtcdCluster) { c.Spec.Bootstrap.Restore.Identity = identity("age") },
			objects: saying(searcher(1, unreadable)),
			want: membership.Search{Begun: true, Problem: "snapshot db-monday: it is encrypted; the identity comes from Secret age, key identity.txt (spec.bootstrap.restore.identity): " +
				"put the right identity there, or name another Secret in that field"},
		},
		"OtherIdentityOfCluster": {
			reason:  "the default",
			cluster: func(c *api.EtcdCluster) { c.Spec.Backup = &api.Backup{Identity: identity("age")} },
			objects: saying(searcher(1, unreadable)),
			want: membership.Search{Begun: true, Problem: "snapshot db-monday: it is encrypted; the identity comes from Secret age, key identity.txt (spec.backup.identity of the EtcdCluster): " +
				"put the right identity there, or name another Secret in that field"},
		},
		"OtherIdentityOfRestore": {
			reason: "whose spec cannot be changed",
			cluster: func(c *api.EtcdCluster) {
				c.Spec.Backup = &api.Backup{Identity: identity("other")}
				c.Status.Restore = inPhase(api.RestoreRestoring, func(r *api.ClusterRestore) {
					r.Source.Store, r.Source.Identity = c.Spec.Bootstrap.Restore.Store, identity("age")
				})
			},
			objects: saying(searcher(1, unreadable)),
			want: membership.Search{Begun: true, Problem: "snapshot db-monday: it is encrypted; the identity comes from Secret age, key identity.txt (spec.source.identity of EtcdRestore back): " +
				"put the right identity there, or delete that EtcdRestore, and apply it again with another Secret"},
		},
		"Killed": {
			reason:  "the agent has said nothing, and its log something",
			objects: saying(searcher(2, "panic: this\nand that")),
			want:    membership.Search{Begun: true, Problem: "container find exited with code 2: and that"},
		},
		"NoImage": {
			reason: "the Pod does not start", objects: saying(waits),
			want: membership.Search{Begun: true, Problem: "the Pod db-find-x cannot pull the image " + agentImage},
		},
		"NoSecret": {
			reason: "the kubelet says only in events what it waits for", objects: saying(creating),
			want: membership.Search{Begun: true, Problem: "the Pod db-find-x has not started its container find (ContainerCreating): kubectl describe pod db-find-x -n ns says why, " +
				"such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"},
		},
		"Unbound": {
			reason: "the claim of the store is named, which has another name than the Pod", objects: saying(unbound),
			want: membership.Search{Begun: true, Problem: "the Pod db-find-x cannot be scheduled: its PersistentVolumeClaim backups is not bound: " +
				"the storage class that it asks for must exist, and its provisioner must run"},
		},
		"NoPod": {
			reason: "a quota is in the way",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				job := searching(t, c)
				job.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
				return []client.Object{job}
			},
			want: membership.Search{Begun: true, Problem: "Job db-find has no Pod: kubectl describe job db-find -n ns says why (a quota, a policy, a ServiceAccount that does not exist)"},
		},
		"NoImageYet": {
			reason: "nor has it had the time to",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				young := waits.DeepCopy()
				young.CreationTimestamp = metav1.Now() // only now: a test may wait for its turn longer than a Pod for its image
				return []client.Object{searching(t, c), young}
			},
			want: membership.Search{Begun: true},
		},
		"AnotherSearch": {
			reason: "the spec has been corrected since",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				c = c.DeepCopy()
				c.Spec.Bootstrap.Restore.Snapshot = "db-sunday"
				return []client.Object{searching(t, c), searcher(0, manifestSaid)}
			},
		},
		"EarlierCluster": {
			reason: "what an EtcdCluster of before has looked for says nothing",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				return []client.Object{ownedBy("earlier", searching(t, c)), searcher(0, manifestSaid)}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := restoringCluster()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			var objects []client.Object
			if tc.objects != nil {
				objects = tc.objects(t, c)
			}
			s := newStub(t, nil, objects...)
			s.AgentImage, s.StallAfter = agentImage, time.Minute
			var seen observed
			if err := s.searched(t.Context(), c, &seen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, seen.Search); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.found, seen.found); diff != "" {
				t.Errorf("%s: found: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoSnapshotAfterLoss: a majority is lost before the first backup, and an earlier cluster of
// this name has left snapshots. Only a person can know that they are wanted.
func TestNoSnapshotAfterLoss(t *testing.T) {
	t.Parallel()
	const said = "snapshot latest of cluster ID c0 that was verified: not found"
	for name, tc := range map[string]struct {
		reason string
		args   bool // Quorate has created the EtcdRestore
		want   string
	}{
		"OnLoss": {
			reason: "it says how to restore the data of an earlier cluster", args: true,
			want: said + "; without a person, Quorate restores only a verified snapshot of this etcd cluster, and none of an earlier one of its name. " +
				"To restore another snapshot, delete EtcdRestore back, and apply one of your own, with spec.source.snapshot: docs/restore.md#automatically",
		},
		"Own": {
			reason: "a person has asked for that one",
			want: said + "; only a verified one is taken: verify it (quorate snapshot verify), or delete EtcdRestore back, " +
				"and apply it again with spec.source.unverified Allow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID = "c0"
			c.Status.Restore = inPhase(api.RestorePending, inBucket, func(r *api.ClusterRestore) {
				r.OnQuorumLoss, r.Source.Cluster, r.Source.ClusterID = tc.args, "", "c0"
			})
			pod := searcher(1, `{"error":{"reason":"NotFound","message":"`+said+`"}}`)
			got := searchProblem(c, pod, agentResult(pod, render.ContainerFind), time.Now())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	step := membership.Step{Action: membership.Find, Reason: membership.Restoring, Message: "looking for the snapshot to start from"}
	other := func(t *testing.T, c *api.EtcdCluster) *batchv1.Job {
		job := searching(t, c)
		job.Annotations = map[string]string{api.AnnotationRevision: "other"}
		return job
	}
	cases := map[string]struct {
		reason  string
		objects func(*testing.T, *api.EtcdCluster) []client.Object
		change  func(*stub)
		want    []write
		err     string
	}{
		"Create": {
			reason: "only where there is none",
			want:   []write{{"apply", "Job", "db-find", "", apply.OnlyIfAbsent}},
		},
		"AnotherSearch": {
			reason:  "the Job of another search makes room",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object { return []client.Object{other(t, c)} },
			want:    []write{{Verb: "delete", Kind: "Job", Name: "db-find", UID: "job"}},
		},
		"Foreign": {
			reason: "a Job of that name has another owner",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				return []client.Object{owned(other(t, c), "batch/v1", "CronJob", "nightly", "nightly")}
			},
			err: "Job db-find exists and belongs to CronJob nightly; delete it if nothing needs it, or create this EtcdCluster under another name",
		},
		"EarlierCluster": {
			reason: "it goes with its EtcdCluster",
			objects: func(t *testing.T, c *api.EtcdCluster) []client.Object {
				return []client.Object{ownedBy("earlier", other(t, c))}
			},
			err: "waiting for the earlier Job db-find to be gone",
		},
		"NoImage": {
			reason: "there is nothing to look with",
			change: func(s *stub) { s.AgentImage = "" },
			err:    errNoAgentImage.Error(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := restoringCluster()
			var objects []client.Object
			if tc.objects != nil {
				objects = tc.objects(t, c)
			}
			s := newStub(t, nil, objects...)
			s.AgentImage = agentImage
			if tc.change != nil {
				tc.change(s)
			}
			said := ""
			if err := s.find(t.Context(), c, step); err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.err, said); diff != "" {
				t.Errorf("%s: error: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChoose: what was chosen is written once, before anything is made of it, and under the
// condition that no other writer was first.
func TestChoose(t *testing.T) {
	t.Parallel()
	step := membership.Step{Action: membership.Choose, Reason: membership.Restoring, Message: "restoring snapshot db-monday"}
	sunday := api.RestoredSnapshot{Name: "db-sunday", SHA256: "50"}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "etcdclusters"}, "db", errors.New("another writer was first"))
	cases := map[string]struct {
		reason string
		before *api.RestoredSnapshot
		refuse error
		want   *api.RestoredSnapshot
		err    error
		told   []string
	}{
		"Chosen":   {reason: "the first choice", want: &monday, told: []string{"Normal Restoring restoring snapshot db-monday"}},
		"Before":   {reason: "it is never written again", before: &sunday, err: apply.ErrChanged},
		"NotFirst": {reason: "another operator has chosen meanwhile", refuse: conflict, err: conflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := restoringCluster()
			c.Status.Restored = tc.before
			s := newStub(t, func(write) error { return tc.refuse })
			err := s.choose(t.Context(), c, observed{found: &monday}, step)
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: want error %v, got %v", tc.reason, tc.err, err)
			}
			var got *api.RestoredSnapshot
			for _, status := range s.status {
				got = status.Restored
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.told, s.told()); diff != "" {
				t.Errorf("%s: events: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestoredStatus: what was chosen stays in the status, and comes back from the volumes where
// that is lost.
func TestRestoredStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before *api.RestoredSnapshot
		first  membership.First
		want   *api.RestoredSnapshot
	}{
		"Empty": {reason: "a cluster that began empty", first: membership.First{Token: "cluster", Size: 3}},
		"Stays": {
			reason: "whatever the volumes say", before: &monday,
			first: membership.First{Token: "cluster", Size: 3, Snapshot: "50 db-sunday"}, want: &monday,
		},
		"Lost": {
			reason: "the volumes remember",
			first:  membership.First{Token: "cluster", Size: 3, Snapshot: "50 db-sunday"}, want: &api.RestoredSnapshot{Name: "db-sunday", SHA256: "50"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := restoringCluster(), healthy()
			c.Status.Restored = tc.before
			for n := range seen.Instances {
				seen.Instances[n].Volume.First = tc.first
			}
			got := status(c, seen, membership.Step{Action: membership.None, Reason: membership.Healthy}).Restored
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBegins: the first members of a restored cluster are never told that they may start empty.
func TestBegins(t *testing.T) {
	t.Parallel()
	const alone, all = "db-1=http://db-1.db.ns.svc:2380", "db-0=http://db-0.db.ns.svc:2380,db-1=http://db-1.db.ns.svc:2380,db-2=http://db-2.db.ns.svc:2380"
	cases := map[string]struct {
		reason string
		first  membership.First
		want   render.Member
	}{
		"Empty": {
			reason: "all of them together",
			first:  membership.First{Token: "cluster", Size: 3},
			want:   render.Member{Name: "db-1", Token: "cluster", BootstrapSize: 3, InitialCluster: all, InitialClusterState: render.StateNew},
		},
		"Restored": {
			reason: "each finds its data, or does not start",
			first:  membership.First{Token: "cluster", Size: 3, Snapshot: "5a db-monday"},
			want: render.Member{
				Name: "db-1", Token: "cluster", BootstrapSize: 3, InitialCluster: alone, InitialClusterState: render.StateExisting,
				Snapshot: "5a db-monday", Restore: "5a db-monday",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := render.Member{Name: "db-1"}
			begins(&m, newCluster(), tc.first)
			if diff := cmp.Diff(tc.want, m); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	seen := healthy()
	seen.Instances[1].Volume.First.Snapshot = "5a db-monday"
	if m := member(newCluster(), seen, "db-1"); m.Restore != "" || m.Snapshot != "5a db-monday" || m.InitialClusterState != render.StateExisting {
		t.Errorf("a member of a cluster that has formed is told to restore: %+v", m)
	}
}

// TestRestoring: what the Pod of a member that is being restored tells, and that no client comes
// while one could be restored again.
func TestRestoring(t *testing.T) {
	t.Parallel()
	said := `{"error":{"reason":"Damaged","message":"snapshot db-monday is damaged: sha256"}}`
	state := func(s corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			s.Name = render.ContainerRestore
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{s}
		}
	}
	cases := map[string]struct {
		reason    string
		change    func(*corev1.Pod)
		restoring bool
		unfenced  bool
		problem   string
	}{
		"Scheduled": {reason: "the kubelet has not said anything", change: func(*corev1.Pod) {}, restoring: true, unfenced: true},
		"Runs": {
			reason:    "the data is being made",
			change:    state(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
			restoring: true, unfenced: true,
		},
		"Done": {
			reason:   "etcd comes next",
			change:   state(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}),
			unfenced: true,
		},
		"Failed": {
			reason: "its agent's words, while it waits for the next try",
			change: state(corev1.ContainerStatus{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: said}},
			}),
			restoring: true, unfenced: true, problem: "cannot be restored: snapshot db-monday is damaged: sha256",
		},
		"NoImage": {
			reason: "the agent cannot be had",
			change: state(corev1.ContainerStatus{
				Image: agentImage, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
			}),
			restoring: true, unfenced: true, problem: "cannot pull the image " + agentImage,
		},
		"NoVolume": {
			reason: "the store's volume cannot be mounted",
			change: state(corev1.ContainerStatus{
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
			}),
			restoring: true, unfenced: true, problem: "has not started its container restore (PodInitializing): kubectl describe pod db-1 -n ns says why, " +
				"such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled",
		},
		"Formed": {
			reason: "it is told to restore nothing any more",
			change: func(p *corev1.Pod) {
				delete(p.Annotations, api.AnnotationRestore)
				state(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})(p)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pod := newCluster(), newPod("db-1")
			pod.Annotations = fenced(c, "db-1")
			pod.Annotations[api.AnnotationRestore] = "5a db-monday"
			tc.change(pod)
			p := podFacts(c, pod, limits{now: time.Now(), stallBefore: time.Now()})
			if p.Restoring != tc.restoring || p.Unfenced != tc.unfenced || p.Problem != tc.problem {
				t.Errorf("%s: want %v, %v, %q, got %v, %v, %q", tc.reason, tc.restoring, tc.unfenced, tc.problem, p.Restoring, p.Unfenced, p.Problem)
			}
			seen := healthy()
			seen.pods["db-1"] = pod
			c.Status.ClusterID = "c0"
			if admitsClients(c, seen) == tc.unfenced {
				t.Errorf("%s: clients come: %v", tc.reason, !tc.unfenced)
			}
		})
	}
}
