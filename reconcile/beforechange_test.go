package reconcile

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
)

// storing gives the cluster a store.
func storing(c *api.EtcdCluster) {
	c.Spec.Backup = &api.Backup{Store: &api.BackupStore{S3: &api.S3Store{Bucket: "backups"}}}
}

// beforeChange is the EtcdBackup of the cluster as its spec is, of which its controller has said
// this.
func beforeChange(c *api.EtcdCluster, reason, message string, stalled bool) *api.EtcdBackup {
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{
		Name: c.BackupBeforeChangeName(), Namespace: c.Namespace, UID: "backup", ResourceVersion: "5",
		Labels: map[string]string{api.LabelCluster: c.Name, api.LabelBeforeChange: string(c.UID)},
	}}
	b.Spec.ClusterRef.Name = c.Name
	if reason == "" {
		return b
	}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	if stalled {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
	return b
}

func verified(c *api.EtcdCluster) *api.EtcdBackup {
	b := beforeChange(c, api.ReasonVerified, "stored, restored and compared", false)
	b.Status.VerifiedAt = new(metav1.Now())
	return b
}

// earlier is the EtcdBackup that was made for the generation before, and is told to be taken for
// that one; none where it is 0.
func earlier(of func(*api.EtcdCluster) *api.EtcdBackup, takenFor int64) func(*api.EtcdCluster) *api.EtcdBackup {
	return func(c *api.EtcdCluster) *api.EtcdBackup {
		before := c.DeepCopy()
		before.Generation--
		b := of(before)
		if takenFor != 0 {
			b.Annotations = map[string]string{api.AnnotationTakenFor: strconv.FormatInt(takenFor, 10)}
		}
		return b
	}
}

func running(c *api.EtcdCluster) *api.EtcdBackup {
	return beforeChange(c, api.ReasonSaving, "saving", false)
}

// plainly is one whose first attempt is under way, and is not encrypted.
func plainly(c *api.EtcdCluster) *api.EtcdBackup {
	b := running(c)
	b.Status.Attempt, b.Status.Store = 1, c.Spec.Backup.Store.DeepCopy()
	return b
}

// toFormerStore is one that saves to another store.
func toFormerStore(c *api.EtcdCluster) *api.EtcdBackup {
	b := plainly(c)
	b.Status.Store.S3.Bucket = "former"
	return b
}

func unsaved(c *api.EtcdCluster) *api.EtcdBackup {
	b := beforeChange(c, "StoreFull", "no snapshot was taken", true)
	b.Status.Failure = &api.BackupFailure{Reason: "StoreFull", Message: "no snapshot was taken"}
	return b
}

// TestBeforeChange is one pass over a cluster whose spec asks for another version and that has a
// store.
func TestBeforeChange(t *testing.T) {
	const (
		name    = "db-before-3-7-3-g7-cluster"
		change  = "changing db-0 in place from 3.6.16 to 3.7.3, then db-2, db-1"
		without = "set spec.backup.beforeChange to Disabled, for the change to begin without a snapshot"
		failed  = "EtcdBackup " + name + " has failed: access denied; make another EtcdBackup. No member is changed. Mend that and delete this EtcdBackup, for another one to be made; or " + without
	)
	const before = "db-before-3-7-3-g6-cluster"
	created := write{"apply", "EtcdBackup", name, "", apply.OnlyIfAbsent}
	type result struct {
		Created []write // EtcdBackups
		Taken   []string
		Ready   string
		Events  []string
		Soon    bool // it looks again within a second
	}
	another := result{
		Created: []write{created}, Taken: []string{"db"}, Ready: "BackingUp: taking a snapshot with EtcdBackup " + name + ", before " + change,
		Events: []string{"Normal BackingUp Created EtcdBackup " + name},
	}
	backups := schema.GroupResource{Group: "etcd.quorate.dev", Resource: "etcdbackups"}
	cases := map[string]struct {
		reason string
		given  func(*world)
		backup func(*api.EtcdCluster) *api.EtcdBackup
		mine   bool // has a turn
		others bool // they have all turns
		refuse func(write) error
		want   result
	}{
		"None": {
			reason: "it is created, in the turn of its cluster",
			want: result{
				Created: []write{created}, Taken: []string{"db"}, Ready: "BackingUp: taking a snapshot with EtcdBackup " + name + ", before " + change,
				Events: []string{"Normal BackingUp Created EtcdBackup " + name},
			},
		},
		"Queued": {
			reason: "a hundred clusters that one commit changes take no hundred snapshots at once", others: true,
			want: result{Taken: []string{"other"}, Ready: "Queued: waiting for its turn behind other clusters, of which at most 1 change at a time (--max-changing); then taking a snapshot with EtcdBackup " + name + ", before " + change},
		},
		"EarlierQueued": {
			reason: "it is under way, and may have ended when the turn comes", others: true, backup: earlier(running, 0),
			want: result{
				Created: []write{{"apply", "EtcdBackup", before, "backup", "5"}}, Taken: []string{"other"},
				Ready: "BackingUp: waiting for EtcdBackup " + before + " (saving), before " + change,
			},
		},
		"EarlierPlain": {
			reason: "the spec asks for encryption by now, and it was begun without", backup: earlier(plainly, 0),
			given: func(w *world) {
				w.cluster.Spec.Backup.Encryption = &api.BackupEncryption{Recipients: []api.AgeRecipient{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}}
			},
			want: another,
		},
		"Exists": {
			reason: "another operator, or this one before it died, has created it: the cache soon has it",
			refuse: func(w write) error {
				if w.Kind == "EtcdBackup" {
					return apierrors.NewConflict(backups, name, errors.New("exists"))
				}
				return nil
			},
			want: result{Taken: []string{"db"}, Soon: true},
		},
		"Refused": {
			reason: "a policy may be against it",
			refuse: func(w write) error {
				if w.Kind == "EtcdBackup" {
					return apierrors.NewForbidden(backups, name, errors.New("quota"))
				}
				return nil
			},
			want: result{Ready: `Refused: the API server refuses what the spec asks for: etcdbackups.etcd.quorate.dev "` + name + `" is forbidden: quota`},
		},
		"Invalid": {
			reason: "no snapshot is taken for what will not be",
			given: func(w *world) {
				w.cluster.Spec.Version, w.cluster.Spec.Options = "3.5.35", &api.Options{Flags: map[string]string{"log-format": "json"}}
			},
			want: result{Ready: "InvalidSpec: spec.options.flags: etcd 3.5.35 has no flag log-format, it was added in 3.6; leave it out"},
		},
		"Runs": {
			reason: "the turn is kept for a while: others take no snapshot meanwhile", mine: true,
			backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				return beforeChange(c, api.ReasonSaving, "taking a snapshot of EtcdCluster db", false)
			},
			want: result{Taken: []string{"db"}, Ready: "BackingUp: waiting for EtcdBackup " + name + " (taking a snapshot of EtcdCluster db), before " + change},
		},
		"Failed": {
			reason: "what it says, and what to do", mine: true,
			backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := beforeChange(c, "AccessDenied", "whatever", true)
				b.Status.Failure = &api.BackupFailure{Reason: "AccessDenied", Message: "access denied; make another EtcdBackup"}
				return b
			},
			want: result{Ready: "BackupFailed: " + failed},
		},
		"Stalled": {
			reason: "it goes on when that is mended",
			backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				return beforeChange(c, api.ReasonPodPending, "Job x has no Pod yet", true)
			},
			want: result{Ready: "BackupFailed: EtcdBackup " + name + " cannot go on: Job x has no Pod yet. No member is changed. Mend that, and it goes on by itself; or " + without},
		},
		"OfEarlierCluster": {
			reason: "whose UID begins in the same way", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := verified(c)
				b.Labels[api.LabelBeforeChange] = "cluster-of-before"
				return b
			},
			want: result{Ready: "ForeignObject: EtcdBackup " + name + " exists and was not made for this EtcdCluster. No member is changed. Delete it; or " + without},
		},
		"Unlabelled": {
			reason: "another owner's, of whatever", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := verified(c)
				b.Labels = nil
				return b
			},
			want: result{Ready: "ForeignObject: EtcdBackup " + name + " exists and was not made for this EtcdCluster. No member is changed. Delete it; or " + without},
		},
		"OfAnotherCluster": {
			reason: "its labels were copied", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := verified(c)
				b.Spec.ClusterRef.Name = "other"
				return b
			},
			want: result{Ready: "ForeignObject: EtcdBackup " + name + " exists and was not made for this EtcdCluster. No member is changed. Delete it; or " + without},
		},
		"Going": {
			reason: "it may be gone before the change begins", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := verified(c)
				b.DeletionTimestamp, b.Finalizers = new(metav1.Now()), []string{api.FinalizerSnapshot}
				return b
			},
			want: result{Ready: "BackingUp: waiting for EtcdBackup " + name + ", which is being deleted, to be gone, before " + change},
		},
		"FailedAndGoing": {
			reason: "why it has failed is not why it stays", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := beforeChange(c, "StoreFull", "no snapshot was taken", true)
				b.Status.Failure = &api.BackupFailure{Reason: "StoreFull", Message: "no snapshot was taken"}
				b.DeletionTimestamp, b.Finalizers = new(metav1.Now()), []string{api.FinalizerSnapshot}
				return b
			},
			want: result{Ready: "BackingUp: waiting for EtcdBackup " + name + ", which is being deleted, to be gone, before " + change},
		},
		"Stays": {
			reason: "its snapshot cannot be deleted", backup: func(c *api.EtcdCluster) *api.EtcdBackup {
				b := beforeChange(c, api.ReasonDeletionFailed, "access denied", true)
				b.Status.Failure = &api.BackupFailure{Reason: "StoreFull", Message: "no snapshot was taken"}
				b.DeletionTimestamp, b.Finalizers = new(metav1.Now()), []string{api.FinalizerSnapshot}
				return b
			},
			want: result{Ready: "BackupFailed: EtcdBackup " + name + " is being deleted, and stays: access denied. No member is changed. Mend that, and it goes on by itself; or " + without},
		},
		"Verified": {
			reason: "the change begins, in its turn", backup: verified,
			want: result{
				Taken: []string{"db"}, Ready: "Changing: " + change, Events: []string{"Normal Changing " + change},
			},
		},
		"EarlierRuns": {
			reason: "the spec was edited meanwhile, and the data is the same: it is told so, for it may have ended at the next look",
			backup: earlier(running, 0),
			want: result{
				Created: []write{{"apply", "EtcdBackup", before, "backup", "5"}}, Ready: "BackingUp: waiting for EtcdBackup " + before + " (saving), before " + change,
			},
		},
		"EarlierRunsForThis": {
			reason: "it is told", backup: earlier(running, 7),
			want: result{Ready: "BackingUp: waiting for EtcdBackup " + before + " (saving), before " + change},
		},
		"EarlierRunsForAnother": {
			reason: "the spec was edited once more", backup: earlier(running, 5),
			want: result{
				Created: []write{{"apply", "EtcdBackup", before, "backup", "5"}}, Ready: "BackingUp: waiting for EtcdBackup " + before + " (saving), before " + change,
			},
		},
		"EarlierVerifiedForThis": {
			reason: "the change begins, in its turn", backup: earlier(verified, 7),
			want: result{
				Taken: []string{"db"}, Ready: "Changing: " + change, Events: []string{"Normal Changing " + change},
			},
		},
		"EarlierStalledForThis": {
			reason: "it goes on when that is mended",
			backup: earlier(func(c *api.EtcdCluster) *api.EtcdBackup {
				return beforeChange(c, api.ReasonPodPending, "Job x has no Pod yet", true)
			}, 7),
			want: result{Ready: "BackupFailed: EtcdBackup " + before + " cannot go on: Job x has no Pod yet. No member is changed. Mend that, and it goes on by itself; or " + without},
		},
		"EarlierBegun": {
			reason: "its first attempt is under way, and goes to the store of the spec", backup: earlier(plainly, 0),
			want: result{
				Created: []write{{"apply", "EtcdBackup", before, "backup", "5"}}, Ready: "BackingUp: waiting for EtcdBackup " + before + " (saving), before " + change,
			},
		},
		"EarlierElsewhere": {reason: "the spec names another store by now", backup: earlier(toFormerStore, 0), want: another},
		"EarlierVerified":  {reason: "it may be of last year", backup: earlier(verified, 0), want: another},
		"EarlierFailed":    {reason: "the edit may have mended why", backup: earlier(unsaved, 0), want: another},
		"EarlierFailedForThis": {
			reason: "it was never made for this spec: another one is", backup: earlier(unsaved, 7), want: another,
		},
		"EarlierGoing": {
			reason: "what goes proves nothing", want: another,
			backup: earlier(func(c *api.EtcdCluster) *api.EtcdBackup {
				b := running(c)
				b.DeletionTimestamp, b.Finalizers = new(metav1.Now()), []string{api.FinalizerSnapshot}
				return b
			}, 0),
		},
		"EarlierOfEarlierCluster": {
			reason: "it is of other data", want: another,
			backup: earlier(func(c *api.EtcdCluster) *api.EtcdBackup {
				b := running(c)
				b.Labels[api.LabelBeforeChange] = "cluster-of-before"
				return b
			}, 0),
		},
		"Disabled": {
			reason: "the spec says so", given: func(w *world) { w.cluster.Spec.Backup.BeforeChange = api.BeforeChangeDisabled },
			want: result{
				Taken: []string{"db"}, Ready: "Changing: " + change, Events: []string{"Normal Changing " + change},
			},
		},
		"Suspended": {
			reason: "nothing is created", given: func(w *world) { w.cluster.Spec.Suspend = true },
			want: result{Ready: "Suspended: suspended by spec.suspend; without it: taking a snapshot with EtcdBackup " + name + ", before " + change},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.upgrading()
			storing(w.cluster)
			if tc.given != nil {
				tc.given(&w)
			}
			w.address()
			w.managed()
			objects := w.objects()
			if tc.backup != nil {
				objects = append(objects, tc.backup(w.cluster))
			}
			s := newStub(t, tc.refuse, objects...)
			s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
			s.MaxChanging = 1
			s.changing.resumed, s.changing.taken = true, map[types.NamespacedName]bool{}
			if tc.others {
				s.changing.taken[turnOf("other")] = true
			}
			if tc.mine {
				s.changing.taken[turnOf("db")] = true
			}
			again, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: turnOf("db")})
			if err != nil {
				t.Fatal(err)
			}
			got := result{Taken: taken(&s.changing), Events: s.told(), Soon: again.RequeueAfter < afterAct}
			for _, write := range s.writes {
				if write.Kind == "EtcdBackup" {
					got.Created = append(got.Created, write)
				}
			}
			if n := len(s.status); n > 0 {
				ready := meta.FindStatusCondition(s.status[n-1].Conditions, api.ConditionReady)
				got.Ready = ready.Reason + ": " + ready.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBeforeChangePastCache: on the word of the cache alone no EtcdBackup is created for a spec of
// before, and no change begins.
func TestBeforeChangePastCache(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		cached func(*api.EtcdCluster) []client.Object // beside the world
		live   func(*api.EtcdCluster) []client.Object
	}{
		"SpecOfBefore": {
			reason: "the spec asks for something else by now",
			live:   func(c *api.EtcdCluster) []client.Object { c.Generation++; return nil },
		},
		"ClusterGoes": {
			reason: "a user deletes the cluster",
			live: func(c *api.EtcdCluster) []client.Object {
				c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
				return nil
			},
		},
		"BackupDeleted": {
			reason: "the snapshot that the cache knows is gone",
			cached: func(c *api.EtcdCluster) []client.Object { return []client.Object{verified(c)} },
			live:   func(*api.EtcdCluster) []client.Object { return nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.upgrading()
			storing(w.cluster)
			w.address()
			w.managed()
			objects := w.objects()
			if tc.cached != nil {
				objects = append(objects, tc.cached(w.cluster)...)
			}
			s := newStub(t, nil, objects...)
			s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
			beside := tc.live(w.cluster)
			s.Reader = newStub(t, nil, append(w.objects(), beside...)...).Client
			again, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: turnOf("db")})
			if err != nil || again.RequeueAfter != afterConflict {
				t.Errorf("%s: it looks again after %s, error %v", tc.reason, again.RequeueAfter, err)
			}
			for _, write := range s.writes {
				if write.Kind == "EtcdBackup" {
					t.Errorf("%s: %+v was written", tc.reason, write)
				}
			}
			if told := s.told(); len(told) > 0 {
				t.Errorf("%s: %v was done", tc.reason, told)
			}
		})
	}
}
