package backup

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

var born = time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC)

// patience of the tests.
const patience = time.Minute

// differs is what is said while the data of the members differs.
const differs = "the data of the members of EtcdCluster db differs, as Quorate has found or etcd says (alarm CORRUPT), and a snapshot of a wrong member could be verified as well. The backup goes on when they are found equal: see the conditions of the EtcdCluster. To save the data of each member until then, run for each POD, in one terminal: kubectl port-forward POD 2379 -n team-a; in another: etcdctl --endpoints localhost:2379 snapshot save POD.db (with TLS as in docs/tls.md#connect)"

// fresh is an EtcdBackup that the operator has not seen before, and a cluster that serves.
func fresh() Observed {
	return Observed{
		Backup: &api.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "1a2b3c4d-b", Generation: 1, CreationTimestamp: metav1.NewTime(born)},
			Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: "db"}},
			Status:     api.EtcdBackupStatus{ObservedGeneration: -1},
		},
		Cluster: &api.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"},
			Spec:       api.EtcdClusterSpec{Backup: &api.Backup{Store: bucket()}},
			Status:     api.EtcdClusterStatus{ClusterID: "cdf818194e3a8c32"},
		},
		AgentImage: true, Written: true, Patience: patience, Now: born.Add(2 * time.Minute),
	}
}

func bucket() *api.BackupStore { return &api.BackupStore{GCS: &api.GCSStore{Bucket: "etcd-backups"}} }

// begun is one whose first attempt is written down.
func begun(o *Observed) {
	s := &o.Backup.Status
	s.Attempt, s.Name, s.Store, s.ClusterID = 1, o.Backup.SnapshotName(1), bucket(), "cdf818194e3a8c32"
}

// running is one whose Job was created just now, and whose Pod runs.
func running(o *Observed) {
	begun(o)
	o.Take = &Job{Name: "nightly", UID: "j", Created: o.Now.Add(-time.Second), Pod: &Result{Runs: true}}
	o.Saves = true
}

// saved is one whose snapshot is stored, and that is being verified.
func saved(o *Observed) {
	running(o)
	o.Backup.Status.SHA256 = "6b86"
}

// failed is one whose attempt has ended so just now.
func failed(reason, message string) func(*Observed) {
	return func(o *Observed) {
		running(o)
		o.Saves = false
		o.Take.Ended = o.Now
		o.Take.Pod = &Result{Failure: &api.BackupFailure{Reason: reason, Message: message}}
	}
}

func verified(o *Observed) {
	saved(o)
	o.Saves = false
	o.Take.Ended, o.Take.Succeeded = o.Now, true
	o.Backup.Status.VerifiedAt = instant(o.Now)
}

// deleted is one that is being deleted, and what it stored with it.
func deleted(o *Observed) {
	o.Backup.Spec.DeletionPolicy = api.RetentionDelete
	o.Backup.Finalizers = []string{api.FinalizerSnapshot}
	o.Backup.DeletionTimestamp = instant(o.Now)
}

func all(changes ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		for _, change := range changes {
			change(o)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const (
		noCluster = "there is no EtcdCluster db in this namespace: create it, or make another EtcdBackup with the right spec.clusterRef.name"
		takes     = "taking a snapshot of EtcdCluster db"
		verifies  = "stored as team-a-nightly-20261125t075000z-1a2b3c4d; verifying it"
		again     = "; when that is mended, make another EtcdBackup: this one is not tried again"
		noPod     = "Job nightly: has no Pod yet: kubectl describe job nightly -n team-a says why (a quota, a policy, a ServiceAccount that does not exist)"
	)
	cases := map[string]struct {
		reason string
		args   func(*Observed)
		want   Step
	}{
		"Begin": {
			reason: "The attempt is written down before its Job is created",
			args:   func(*Observed) {},
			want:   Step{Action: Begin, Reason: api.ReasonSaving, Message: takes},
		},
		"HoldFirst": {
			reason: "With Delete nothing is stored that its deletion would leave behind",
			args:   func(o *Observed) { o.Backup.Spec.DeletionPolicy = api.RetentionDelete },
			want:   Step{Action: Hold},
		},
		"ReleaseOnRetain": {
			reason: "A finalizer that has nothing to do goes",
			args:   all(verified, func(o *Observed) { o.Backup.Finalizers = []string{api.FinalizerSnapshot} }),
			want:   Step{Action: Release},
		},
		"ClusterNotThereYet": {
			reason: "They may be applied together",
			args:   func(o *Observed) { o.Cluster, o.Now = nil, born.Add(time.Second) },
			want:   Step{Action: Wait, Reason: api.ReasonClusterNotFound, Message: noCluster, After: patience - time.Second},
		},
		"ClusterNotThere": {
			reason: "After a while a person must look",
			args:   func(o *Observed) { o.Cluster = nil },
			want:   Step{Action: Stall, Reason: api.ReasonClusterNotFound, Message: noCluster},
		},
		"ClusterGoing": {
			reason: "What is being deleted is not there",
			args:   func(o *Observed) { o.Cluster.DeletionTimestamp = instant(o.Now) },
			want:   Step{Action: Stall, Reason: api.ReasonClusterNotFound, Message: noCluster},
		},
		"NeverFormed": {
			reason: "There is nothing to take a snapshot of",
			args:   func(o *Observed) { o.Cluster.Status.ClusterID = "" },
			want:   Step{Action: Stall, Reason: api.ReasonNotFormed, Message: "EtcdCluster db has not formed yet: its conditions say what it waits for"},
		},
		"Hibernated": {
			reason: "Nothing runs",
			args:   func(o *Observed) { o.Cluster.Spec.Replicas = new(int32(0)) },
			want:   Step{Action: Stall, Reason: api.ReasonHibernated, Message: "spec.replicas of EtcdCluster db is 0: nothing runs that a snapshot could be taken from; set it to what it was"},
		},
		"DataDiffers": {
			reason: "No quorum of the members has equal data, and a snapshot of a wrong one could be verified as well",
			args: func(o *Observed) {
				o.Cluster.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonDataDiffers}}
			},
			want: Step{Action: Stall, Reason: api.ReasonDataDiffers, Message: differs},
		},
		"CorruptMember": {
			reason: "A member whose data is wrong is about to go",
			args: func(o *Observed) {
				o.Backup.CreationTimestamp = metav1.NewTime(o.Now)
				o.Cluster.Status.Conditions = []metav1.Condition{{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: api.ReasonCorruptMember}}
			},
			want: Step{Action: Wait, Reason: api.ReasonDataDiffers, Message: differs, After: time.Minute},
		},
		"AlarmNotJudged": {
			reason: "etcd has accused a member, and it is not known yet which is wrong",
			args: func(o *Observed) {
				o.Cluster.Status.Conditions = []metav1.Condition{
					{Type: api.ConditionAvailable, Status: metav1.ConditionFalse, Reason: api.ReasonAlarm},
					{Type: api.ConditionDegraded, Status: metav1.ConditionTrue, Reason: api.ReasonDataDiffers},
					{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: api.ReasonAlarm},
				}
			},
			want: Step{Action: Stall, Reason: api.ReasonDataDiffers, Message: differs},
		},
		"AlarmNoSpace": {
			reason: "What is there can be saved, and a backup is wanted before a person makes room",
			args: func(o *Observed) {
				o.Cluster.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonAlarm}}
			},
			want: Step{Action: Begin, Reason: api.ReasonSaving, Message: takes},
		},
		"NoStore": {
			reason: "The spec must say where it goes",
			args:   func(o *Observed) { o.Cluster.Spec.Backup = nil },
			want:   Step{Action: Stall, Reason: api.ReasonNoStore, Message: "there is no store: set spec.backup.store of EtcdCluster db, or make another EtcdBackup with spec.store"},
		},
		"NoImage": {
			reason: "An operator that was started by hand must be told",
			args:   func(o *Observed) { o.AgentImage = false },
			want:   noImage(),
		},
		"Take": {
			reason: "Only what is written down has a Job",
			args:   begun,
			want:   Step{Action: Take, Reason: api.ReasonSaving, Message: takes},
		},
		"TakeWithoutCluster": {
			reason: "It went away in between",
			args:   all(begun, func(o *Observed) { o.Cluster = nil }),
			want:   Step{Action: Stall, Reason: api.ReasonClusterNotFound, Message: noCluster},
		},
		"Foreign": {
			reason: "A Job of another owner is left alone",
			args:   all(begun, func(o *Observed) { o.Take = &Job{Name: "nightly", Foreign: true} }),
			want:   Step{Action: Stall, Reason: api.ReasonForeignObject, Message: "Job nightly does not belong to this EtcdBackup: make another EtcdBackup under another name, or delete that Job"},
		},
		"Former": {
			reason: "Deleted and created again, it waits for the garbage collector",
			args:   all(begun, func(o *Observed) { o.Take = &Job{Name: "nightly", Former: true} }),
			want:   Step{Action: Wait, Reason: api.ReasonTerminating, Message: "waiting for Job nightly of a former EtcdBackup of this name to be gone", After: whileRunning},
		},
		"Saving": {
			reason: "Its Pod runs",
			args:   running,
			want:   Step{Action: Wait, Reason: api.ReasonSaving, Message: takes, After: whileRunning},
		},
		"NoPodYet": {
			reason: "Kubernetes takes a moment",
			args:   all(running, func(o *Observed) { o.Take.Pod = nil }),
			want:   Step{Action: Wait, Reason: api.ReasonSaving, Message: takes, After: whileRunning},
		},
		"NoPod": {
			reason: "A quota, or a policy, is seen on the Job alone",
			args:   all(running, func(o *Observed) { o.Take.Pod, o.Take.Created = nil, born }),
			want:   Step{Action: Stall, Reason: api.ReasonPodPending, Message: noPod, After: whileRunning},
		},
		"NoSecret": {
			reason: "Credentials that are not there are found by the kubelet alone; once they are, it goes on",
			args: all(running, func(o *Observed) {
				o.Take.Created, o.Take.Pod.Pending = born, `cannot start its container save: secret "s3" not found`
			}),
			want: Step{Action: Stall, Reason: api.ReasonPodPending, Message: `Job nightly: cannot start its container save: secret "s3" not found`, After: whileRunning},
		},
		"Verifying": {
			reason: "It is stored",
			args:   saved,
			want:   Step{Action: Wait, Reason: api.ReasonVerifying, Message: verifies, After: whileRunning},
		},
		"VerifiedUnwritten": {
			reason: "The Job stays until its result is written down",
			args:   all(verified, func(o *Observed) { o.Written = false }),
			want:   Step{Action: None, Reason: api.ReasonVerified, Message: "stored, restored and compared"},
		},
		"Tidy": {
			reason: "The Job goes, and its Pod and the room it takes with it",
			args:   verified,
			want:   Step{Action: Tidy, Reason: api.ReasonVerified, Message: "stored, restored and compared"},
		},
		"Done": {
			reason: "Nothing is done any more, whatever has become of the cluster",
			args: all(verified, func(o *Observed) {
				o.Take, o.Cluster, o.Backup.Spec.Verify = nil, nil, api.VerifyHash
			}),
			want: Step{Action: None, Reason: api.ReasonVerified, Message: "stored, read again and compared"},
		},
		"AccessDenied": {
			reason: "Wrong credentials are wrong the next time too",
			args:   failed("AccessDenied", "the store refuses s3:PutObject"),
			want:   Step{Action: GiveUp, Reason: "AccessDenied", Message: "no snapshot was taken: the store refuses s3:PutObject" + again},
		},
		"OtherCluster": {
			reason: "Another cluster answers under that name",
			args:   failed("OtherCluster", "http://db-0 belongs to cluster 1"),
			want:   Step{Action: GiveUp, Reason: "OtherCluster", Message: "no snapshot was taken: http://db-0 belongs to cluster 1" + again},
		},
		"Retrying": {
			reason: "What may mend itself is waited for",
			args:   failed("Unreachable", "no member answers"),
			want:   Step{Action: Wait, Reason: api.ReasonRetrying, Message: "no snapshot was taken; attempt 1 of 5 failed, the next one begins at 2026-11-25T07:52:10Z: no member answers", After: 10 * time.Second},
		},
		"RetryingLonger": {
			reason: "The second time longer",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Backup.Status.Attempt = 2
			}),
			want: Step{Action: Wait, Reason: api.ReasonRetrying, Message: "no snapshot was taken; attempt 2 of 5 failed, the next one begins at 2026-11-25T07:53:00Z: no member answers", After: time.Minute},
		},
		"RetryingLast": {
			reason: "A store may be away for a quarter of an hour",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Backup.Status.Attempt = 4
			}),
			want: Step{Action: Wait, Reason: api.ReasonRetrying, Message: "no snapshot was taken; attempt 4 of 5 failed, the next one begins at 2026-11-25T08:07:00Z: no member answers", After: 15 * time.Minute},
		},
		"Again": {
			reason: "The next attempt is written down first, like every one",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Take.Ended = o.Now.Add(-10 * time.Second)
			}),
			want: Step{Action: Begin, Reason: api.ReasonRetrying, Message: "no snapshot was taken; beginning attempt 2 of 5"},
		},
		"AgainWithoutCluster": {
			reason: "What a Job cannot be made without is waited for",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Take.Ended, o.Cluster = born, nil
			}),
			want: Step{Action: Stall, Reason: api.ReasonClusterNotFound, Message: noCluster},
		},
		"FiveTimes": {
			reason: "It is not tried for ever",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Backup.Status.Attempt = 5
			}),
			want: Step{Action: GiveUp, Reason: "Unreachable", Message: "no snapshot was taken: no member answers" + again},
		},
		"PodGone": {
			reason: "A drained node takes the result with it",
			args:   all(failed("", ""), func(o *Observed) { o.Take.Pod = nil }),
			want:   Step{Action: Wait, Reason: api.ReasonRetrying, Message: "no snapshot was taken; attempt 1 of 5 failed, the next one begins at 2026-11-25T07:52:10Z: the Pod of Job nightly is gone, and with it what came of it", After: 10 * time.Second},
		},
		"Overran": {
			reason: "One that hangs comes to an end, and its containers know only that they were killed",
			args:   all(failed("AgentFailed", "container save exited with code 137"), func(o *Observed) { o.Take.Overran = true }),
			want: Step{
				Action: Wait, Reason: api.ReasonRetrying, After: 10 * time.Second,
				Message: "no snapshot was taken; attempt 1 of 5 failed, the next one begins at 2026-11-25T07:52:10Z: Job nightly had not ended 6 hours after it had begun, and was ended: a container hangs, or its Pod could not start",
			},
		},
		"VerifyAgain": {
			reason: "What is stored is not taken again",
			args:   all(failed("TimedOut", "etcd does not serve"), func(o *Observed) { o.Backup.Status.SHA256 = "6b86" }),
			want:   Step{Action: Wait, Reason: api.ReasonRetrying, Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified; attempt 1 of 5 failed, the next one begins at 2026-11-25T07:52:10Z: etcd does not serve", After: 10 * time.Second},
		},
		"Damaged": {
			reason: "What is damaged stays damaged",
			args:   all(failed("Damaged", "sha256 differs"), func(o *Observed) { o.Backup.Status.SHA256 = "6b86" }),
			want:   Step{Action: GiveUp, Reason: "Damaged", Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified: sha256 differs; it does not count as a backup: make another EtcdBackup"},
		},
		"EncryptedInterrupted": {
			reason: "The plain copy went with the Pod, and the operator has no key: another snapshot is taken",
			args: all(failed("Evicted", "the node was drained"), func(o *Observed) {
				o.Backup.Status.SHA256, o.Backup.Spec.Encryption, o.Take.Ended = "6b86", &api.BackupEncryption{}, born
			}),
			want: Step{Action: Begin, Reason: api.ReasonRetrying, Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified (its plain copy is gone with the Pod); beginning attempt 2 of 5"},
		},
		"EncryptedHash": {
			reason: "What is stored can be read again without a key",
			args: all(failed("TimedOut", "the store does not answer"), func(o *Observed) {
				o.Backup.Status.SHA256, o.Backup.Spec.Encryption, o.Backup.Spec.Verify, o.Take.Ended = "6b86", &api.BackupEncryption{}, api.VerifyHash, born
			}),
			want: Step{Action: Begin, Reason: api.ReasonRetrying, Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified; beginning attempt 2 of 5"},
		},
		"EncryptedUnverified": {
			reason: "It is not tried for ever",
			args: all(failed("TimedOut", "etcd does not serve"), func(o *Observed) {
				o.Backup.Status.SHA256, o.Backup.Spec.Encryption, o.Backup.Status.Attempt = "6b86", &api.BackupEncryption{}, 5
			}),
			want: Step{Action: GiveUp, Reason: "TimedOut", Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified: etcd does not serve; its plain copy is gone with the Pod: verify it by hand with its private key (quorate snapshot verify), or make another EtcdBackup"},
		},
		"EncryptedByCluster": {
			reason: "The same, where the cluster asked for it",
			args: all(failed("TimedOut", "etcd does not serve"), func(o *Observed) {
				o.Backup.Status.SHA256, o.Backup.Status.Encryption, o.Backup.Status.Attempt = "6b86", &api.BackupEncryption{}, 5
			}),
			want: Step{Action: GiveUp, Reason: "TimedOut", Message: "the snapshot is stored as team-a-nightly-20261125t075000z-1a2b3c4d, and is not verified: etcd does not serve; its plain copy is gone with the Pod: verify it by hand with its private key (quorate snapshot verify), or make another EtcdBackup"},
		},
		"GivenUp": {
			reason: "It stays what it is, whatever has become of the Job",
			args:   all(begun, func(o *Observed) { o.Backup.Status.Failure = &api.BackupFailure{Reason: "StoreFull", Message: "full"} }),
			want:   Step{Action: Stall, Reason: "StoreFull", Message: "full"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			tc.args(&o)
			if diff := cmp.Diff(tc.want, Plan(o)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLasting: the reasons are those that stores give, by the names that they have there.
func TestLasting(t *testing.T) {
	t.Parallel()
	for _, reason := range []snapshot.Reason{
		snapshot.ReasonInvalidStore, snapshot.ReasonNoSuchBucket, snapshot.ReasonNoCredentials, snapshot.ReasonInvalidCredentials,
		snapshot.ReasonCredentialsExpired, snapshot.ReasonAccessDenied, snapshot.ReasonWrongRegion, snapshot.ReasonClockSkew,
		snapshot.ReasonUntrustedCertificate, snapshot.ReasonStoreFull, snapshot.ReasonReadOnly, snapshot.ReasonEncryptionKey, snapshot.ReasonUnsupported,
	} {
		if !slices.Contains(lasting, string(reason)) {
			t.Errorf("%s is tried again", reason)
		}
	}
	for _, reason := range []snapshot.Reason{snapshot.ReasonUnreachable, snapshot.ReasonBusy, snapshot.ReasonAlreadyExists, snapshot.ReasonStoreFailed} {
		if slices.Contains(lasting, string(reason)) {
			t.Errorf("%s is not tried again", reason)
		}
	}
}

func TestPlanDeletion(t *testing.T) {
	t.Parallel()
	const out = "; to let the EtcdBackup go and leave the snapshot in the store, set spec.deletionPolicy to Retain"
	deletion := func(o *Observed) {
		o.Delete = &Job{Name: "nightly-delete", UID: "d", Created: o.Now.Add(-time.Second), Pod: &Result{Runs: true}}
	}
	cases := map[string]struct {
		reason string
		args   func(*Observed)
		want   Step
	}{
		"NotHeld": {
			reason: "The garbage collector does the rest",
			args:   all(running, func(o *Observed) { o.Backup.DeletionTimestamp = instant(o.Now) }),
			want:   Step{Action: None},
		},
		"Retain": {
			reason: "The way out: Retain lets it go",
			args:   all(verified, deleted, func(o *Observed) { o.Backup.Spec.DeletionPolicy = api.RetentionRetain }),
			want:   Step{Action: Release},
		},
		"NothingBegun": {
			reason: "Nothing is stored",
			args:   deleted,
			want:   Step{Action: Release},
		},
		"WhileSaving": {
			reason: "What still stores something is stopped first",
			args:   all(running, deleted),
			want:   Step{Action: Stop, Reason: api.ReasonDeleting, Message: "stopping Job nightly"},
		},
		"WhileStopping": {
			reason: "A Pod that ends may have stored something at the last moment",
			args:   all(running, deleted, func(o *Observed) { o.Take = nil }),
			want:   Step{Action: Wait, Reason: api.ReasonDeleting, Message: "waiting for the Pods of its Jobs to end", After: whileRunning},
		},
		"Stored": {
			reason: "What is stored is deleted, whatever has become of the cluster",
			args:   all(verified, deleted, func(o *Observed) { o.Cluster = nil }),
			want:   Step{Action: Delete, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store"},
		},
		"GivenUp": {
			reason: "An attempt that failed may have left something",
			args:   all(failed("StoreFull", "full"), deleted),
			want:   Step{Action: Delete, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store"},
		},
		"NoImage": {
			reason: "There is a way out of everything",
			args:   all(verified, deleted, func(o *Observed) { o.AgentImage = false }),
			want:   Step{Action: Stall, Reason: api.ReasonNoAgentImage, Message: noImage().Message + out},
		},
		"Deleting": {
			reason: "Its Pod runs",
			args:   all(verified, deleted, deletion),
			want:   Step{Action: Wait, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store", After: whileRunning},
		},
		"NoSecret": {
			reason: "Credentials that were deleted with it",
			args: all(verified, deleted, deletion, func(o *Observed) {
				o.Delete.Created, o.Delete.Pod.Pending = born, `cannot start its container delete: secret "s3" not found`
			}),
			want: Step{Action: Stall, Reason: api.ReasonPodPending, Message: `Job nightly-delete: cannot start its container delete: secret "s3" not found` + out, After: whileRunning},
		},
		"Foreign": {
			reason: "A Job of another owner is left alone",
			args:   all(verified, deleted, deletion, func(o *Observed) { o.Delete.Foreign = true }),
			want:   Step{Action: Stall, Reason: api.ReasonForeignObject, Message: "Job nightly-delete does not belong to this EtcdBackup: delete that Job, for the snapshot to be deleted" + out},
		},
		"Deleted": {
			reason: "Nothing is left",
			args:   all(verified, deleted, deletion, func(o *Observed) { o.Delete.Ended, o.Delete.Succeeded = o.Now, true }),
			want:   Step{Action: Release, Reason: api.ReasonSnapshotDeleted, Message: "deleted the snapshot team-a-nightly-20261125t075000z-1a2b3c4d in the store"},
		},
		"Unreachable": {
			reason: "A store that cannot be reached holds it, and the message says how to let go",
			args: all(verified, deleted, deletion, func(o *Observed) {
				o.Delete.Ended, o.Delete.Pod = o.Now.Add(-time.Second), &Result{Failure: &api.BackupFailure{Reason: "Unreachable", Message: "no such host"}}
			}),
			want: Step{Action: Stall, Reason: api.ReasonDeletionFailed, After: betweenDeletions - time.Second, Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: no such host" + out},
		},
		"LaterAndLater": {
			reason: "What has failed for an hour rests for half an hour",
			args: all(verified, deleted, deletion, func(o *Observed) {
				o.Delete.Ended, o.Delete.Pod, o.Backup.DeletionTimestamp = o.Now, nil, instant(o.Now.Add(-time.Hour))
			}),
			want: Step{Action: Stall, Reason: api.ReasonDeletionFailed, After: 30 * time.Minute, Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: its Job has failed" + out},
		},
		"Hourly": {
			reason: "It is never given up",
			args: all(verified, deleted, deletion, func(o *Observed) {
				o.Delete.Ended, o.Delete.Pod, o.Backup.DeletionTimestamp = o.Now, nil, instant(o.Now.AddDate(0, 0, -9))
			}),
			want: Step{Action: Stall, Reason: api.ReasonDeletionFailed, After: time.Hour, Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: its Job has failed" + out},
		},
		"Again": {
			reason: "It is tried again",
			args: all(verified, deleted, deletion, func(o *Observed) {
				o.Delete.Ended, o.Delete.Pod = born, nil
			}),
			want: Step{Action: RetryDeletion, Reason: api.ReasonDeletionFailed, Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: its Job has failed" + out},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			tc.args(&o)
			if diff := cmp.Diff(tc.want, Plan(o)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
