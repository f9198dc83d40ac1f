package v1alpha1

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestSnapshotName: no EtcdBackup stores, or deletes, under the name of another one.
func TestSnapshotName(t *testing.T) {
	t.Parallel()
	type args struct {
		namespace, name string
		uid             types.UID
		attempt         int32
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"First": {
			reason: "namespace, name, time of creation, UID",
			args:   args{"team-a", "nightly", "1a2b3c4d-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-1a2b3c4d",
		},
		"Second": {
			reason: "an attempt has a name of its own",
			args:   args{"team-a", "nightly", "1a2b3c4d-0000-4000-8000-000000000002", 2},
			want:   "team-a-nightly-20261125t075000z-1a2b3c4d-2",
		},
		"OtherUID": {
			reason: "one of the same name in another Kubernetes cluster, made in the same second",
			args:   args{"team-a", "nightly", "5f9a8c1e-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-5f9a8c1e",
		},
		"OtherNamespace": {
			reason: "team and a-nightly read like team-a and nightly: the UIDs differ",
			args:   args{"team", "a-nightly", "77777777-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-77777777",
		},
		"Longest": {
			reason: "the longest names are within the 220 characters of a snapshot",
			args:   args{strings.Repeat("n", 63), strings.Repeat("b", 56), "1a2b3c4d-0000-4000-8000-000000000002", 3},
			want:   strings.Repeat("n", 63) + "-" + strings.Repeat("b", 56) + "-20261125t075000z-1a2b3c4d-3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &EtcdBackup{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.args.namespace, Name: tc.args.name, UID: tc.args.uid,
				CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC)),
			}}
			if got := b.SnapshotName(tc.args.attempt); got != tc.want || len(got) > 220 {
				t.Errorf("%s: want %s, got %s with %d characters", tc.reason, tc.want, got, len(got))
			}
		})
	}
}

// TestBackupBeforeChangeName: each generation of the spec has one name, that of an EtcdBackup.
func TestBackupBeforeChangeName(t *testing.T) {
	t.Parallel()
	const uid = "1a2b3c4d-0000-4000-8000-000000000002"
	type args struct {
		name, version string
		generation    int64
		uid           types.UID
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"Short":          {reason: "cluster, version, generation, UID", args: args{"db", "3.7.3", 5, uid}, want: "db-before-3-7-3-g5-1a2b3c4d"},
		"Leading":        {reason: "a leading v is the same version", args: args{"db", "v3.7.3", 5, uid}, want: "db-before-3-7-3-g5-1a2b3c4d"},
		"NextGeneration": {reason: "another spec has another snapshot", args: args{"db", "3.7.3", 6, uid}, want: "db-before-3-7-3-g6-1a2b3c4d"},
		"OtherUID":       {reason: "and so has a cluster that is made again", args: args{"db", "3.7.3", 5, "5f9a8c1e-0000-4000-8000-000000000002"}, want: "db-before-3-7-3-g5-5f9a8c1e"},
		"Offline":        {reason: "an object that was in no API server", args: args{"db", "3.7.3", 0, ""}, want: "db-before-3-7-3-g0-"},
		"Long":           {reason: "the end of the cluster's name is left out", args: args{strings.Repeat("a", 56), "3.7.123", 5, uid}, want: strings.Repeat("a", 29) + "-before-3-7-123-g5-1a2b3c4d"},
		"LongCutAtDash":  {reason: "no two dashes meet", args: args{strings.Repeat("a", 28) + "-" + strings.Repeat("a", 27), "3.7.123", 5, uid}, want: strings.Repeat("a", 28) + "-before-3-7-123-g5-1a2b3c4d"},
		"Longest": {
			reason: "as many generations as there can be",
			args:   args{strings.Repeat("a", 56), "3.7.123", 9223372036854775807, uid}, want: strings.Repeat("a", 11) + "-before-3-7-123-g9223372036854775807-1a2b3c4d",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: tc.args.name, UID: tc.args.uid, Generation: tc.args.generation}}
			c.Spec.Version = tc.args.version
			if got := c.BackupBeforeChangeName(); got != tc.want || len(got) > 56 {
				t.Errorf("%s: want %s, got %s with %d characters", tc.reason, tc.want, got, len(got))
			}
		})
	}
}

// TestEncryptionFor: a cluster that asks for encryption has no plain snapshot.
func TestEncryptionFor(t *testing.T) {
	t.Parallel()
	to := func(recipient AgeRecipient) *BackupEncryption {
		return &BackupEncryption{Recipients: []AgeRecipient{recipient}}
	}
	elsewhere := &BackupStore{Volume: &VolumeStore{ClaimName: "elsewhere"}}
	cases := map[string]struct {
		reason  string
		spec    EtcdBackupSpec
		earlier *BackupEncryption // of an attempt before
		cluster *BackupEncryption
		want    *BackupEncryption
	}{
		"None":         {reason: "nothing asks for it"},
		"Own":          {reason: "as it says itself", spec: EtcdBackupSpec{Encryption: to("own")}, want: to("own")},
		"Cluster":      {reason: "it need not repeat it", cluster: to("cluster"), want: to("cluster")},
		"Both":         {reason: "its own recipients are meant", spec: EtcdBackupSpec{Encryption: to("own")}, cluster: to("cluster"), want: to("own")},
		"OwnStore":     {reason: "another store is no less readable", spec: EtcdBackupSpec{Store: elsewhere}, cluster: to("cluster"), want: to("cluster")},
		"AskedSince":   {reason: "the attempt before was plain, and has failed", earlier: nil, cluster: to("cluster"), want: to("cluster")},
		"OtherSince":   {reason: "the recipients of before may be known to others", earlier: to("earlier"), cluster: to("cluster"), want: to("cluster")},
		"LeftOutSince": {reason: "what was begun encrypted goes on so", earlier: to("earlier"), want: to("earlier")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &EtcdBackup{Spec: tc.spec, Status: EtcdBackupStatus{Encryption: tc.earlier}}
			c := &EtcdCluster{Spec: EtcdClusterSpec{Backup: &Backup{Encryption: tc.cluster}}}
			if diff := cmp.Diff(tc.want, b.EncryptionFor(c)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
