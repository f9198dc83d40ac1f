package backup

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/snapshot"
)

// taken is the manifest of a snapshot, as the agent writes it.
func taken() *snapshot.Manifest {
	return &snapshot.Manifest{
		Format: snapshot.Format, Name: "team-a-nightly-20261125t075000z-1a2b3c4d", Cluster: "team-a/db", ClusterID: "cdf818194e3a8c32", MemberID: "8211f1d0f64f3269",
		Member: "db-1", EtcdVersion: "3.6.16", Revision: 42, TotalKeys: 7, Object: "team-a-nightly-20261125t075000z-1a2b3c4d.db.zst",
		Size: 24608, SHA256: "6b86", StoredSize: 1024, StoredSHA256: "d473", StartedAt: born.Add(500 * time.Millisecond), TakenAt: born.Add(2 * time.Second),
	}
}

// said is the result that an agent leaves.
func said(t *testing.T, m *snapshot.Manifest, v *snapshot.Verification, e *podstatus.Failure) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"manifest": m, "verification": v, "error": e})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func ended(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}
}

func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func pod(phase corev1.PodPhase, init ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly-x", Namespace: "team-a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "verify"}}},
		Status:     corev1.PodStatus{Phase: phase, InitContainerStatuses: init},
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	verification := &snapshot.Verification{Format: snapshot.Format, Name: taken().Name, Mode: snapshot.ModeRestore, At: born.Add(time.Minute), SHA256: "6b86"}
	stored := &podstatus.Manifest{
		Name: "team-a-nightly-20261125t075000z-1a2b3c4d", ClusterID: "cdf818194e3a8c32", Member: "db-1", EtcdVersion: "3.6.16", Revision: 42,
		Object: "team-a-nightly-20261125t075000z-1a2b3c4d.db.zst", Size: 24608, SHA256: "6b86", StoredSize: 1024,
		StartedAt: born.Add(500 * time.Millisecond), TakenAt: born.Add(2 * time.Second),
	}
	waits := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "etcd", Image: "etcd:v3.6.16", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	cases := map[string]struct {
		reason string
		args   *corev1.Pod
		want   Result
	}{
		"Started": {
			reason: "Nothing has ended",
			args: pod(corev1.PodPending,
				corev1.ContainerStatus{Name: "save", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, waits("PodInitializing", ""),
			),
			want: Result{Runs: true},
		},
		"Saved": {
			reason: "The first container has ended",
			args:   pod(corev1.PodPending, ended("save", 0, said(t, taken(), nil, nil)), waits("PodInitializing", "")),
			want:   Result{Runs: true, Manifest: stored},
		},
		"Verified": {
			reason: "The last one has, and etcd was stopped after it",
			args: func() *corev1.Pod {
				p := pod(corev1.PodSucceeded, ended("save", 0, said(t, taken(), nil, nil)), ended("etcd", 137, "killed"))
				p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("verify", 0, said(t, taken(), verification, nil))}
				return p
			}(),
			want: Result{Manifest: stored, Verified: born.Add(time.Minute)},
		},
		"HalfVerified": {
			reason: "Where it is to be restored, a hash alone is no proof",
			args:   pod(corev1.PodPending, ended("save", 0, said(t, taken(), nil, nil)), ended("verify-hash", 0, said(t, nil, verification, nil))),
			want:   Result{Runs: true, Manifest: stored},
		},
		"Refused": {
			reason: "What the agent says goes unchanged into the status",
			args:   pod(corev1.PodFailed, ended("save", 1, said(t, nil, nil, &podstatus.Failure{Reason: "AccessDenied", Message: "the store refuses s3:PutObject"}))),
			want:   Result{Failure: &api.BackupFailure{Reason: "AccessDenied", Message: "the store refuses s3:PutObject"}},
		},
		"NoReason": {
			reason: "A condition takes one word only",
			args:   pod(corev1.PodFailed, ended("save", 1, said(t, nil, nil, &podstatus.Failure{Reason: "access denied", Message: "no"}))),
			want:   Result{Failure: &api.BackupFailure{Reason: api.ReasonAgentFailed, Message: "no"}},
		},
		"Crashed": {
			reason: "Without a result the end of the log tells",
			args:   pod(corev1.PodFailed, ended("restore", 2, "saving\npanic: runtime error\n")),
			want:   Result{Failure: &api.BackupFailure{Reason: api.ReasonAgentFailed, Message: "container restore exited with code 2: panic: runtime error"}},
		},
		"OutOfMemory": {
			reason: "A container that was killed says nothing",
			args: func() *corev1.Pod {
				s := ended("verify", 137, "")
				s.State.Terminated.Reason = "OOMKilled"
				return pod(corev1.PodFailed, s)
			}(),
			want: Result{Failure: &api.BackupFailure{Reason: "OOMKilled", Message: "container verify was killed for using more memory than it may (OOMKilled)"}},
		},
		"Evicted": {
			reason: "Neither does one that was evicted",
			args: func() *corev1.Pod {
				p := pod(corev1.PodFailed)
				p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: ephemeral-storage."
				return p
			}(),
			want: Result{Failure: &api.BackupFailure{Reason: "Evicted", Message: "the Pod has failed: The node was low on resource: ephemeral-storage."}},
		},
		"NoImage": {
			reason: "A registry that does not have it",
			args:   pod(corev1.PodPending, waits("ImagePullBackOff", "back-off pulling")),
			want:   Result{Runs: true, Pending: "cannot pull the image etcd:v3.6.16"},
		},
		"Unsigned": {
			reason: "A kubelet that verifies signatures",
			args:   pod(corev1.PodPending, waits("SignatureValidationFailed", "no signature exists")),
			want:   Result{Runs: true, Pending: "cannot pull the image etcd:v3.6.16"},
		},
		"NoSecret": {
			reason: "The kubelet finds that the credentials are not there",
			args:   pod(corev1.PodPending, waits("CreateContainerConfigError", `secret "s3" not found`)),
			want:   Result{Runs: true, Pending: `cannot start its container etcd: secret "s3" not found`},
		},
		"NoSecretVolume": {
			reason: "A volume that cannot be mounted: the kubelet says so in an event alone, and no container has run",
			args: pod(corev1.PodPending,
				waiting("save", "PodInitializing", ""), waiting("fetch", "PodInitializing", ""),
			),
			want: Result{Runs: true, Pending: "has not started its container save (PodInitializing): kubectl describe pod nightly-x -n team-a says why, such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"},
		},
		"NoSandbox": {
			reason: "Where the kubelet has a word for it, that is told",
			args:   pod(corev1.PodPending, waiting("save", "SomethingNew", "no network")),
			want:   Result{Runs: true, Pending: "has not started its container save (SomethingNew: no network): kubectl describe pod nightly-x -n team-a says why, such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"},
		},
		"NoKubelet": {
			reason: "A kubelet that says nothing at all",
			args:   pod(corev1.PodPending),
			want:   Result{Runs: true, Pending: "has started no container: kubectl describe pod nightly-x -n team-a says why, such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"},
		},
		"BetweenTwo": {
			reason: "The next container is being created",
			args:   pod(corev1.PodPending, ended("save", 0, ""), waiting("fetch", "PodInitializing", "")),
			want:   Result{Runs: true},
		},
		"Unschedulable": {
			reason: "The scheduler finds that the claim is not there",
			args: func() *corev1.Pod {
				p := pod(corev1.PodPending)
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Message: `0/3 nodes are available: persistentvolumeclaim "backups" not found. preemption: 0/3 nodes`,
				}}
				return p
			}(),
			want: Result{Runs: true, Pending: `cannot be scheduled: 0/3 nodes are available: persistentvolumeclaim "backups" not found`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, result(tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
