package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/snapshot"
)

var (
	exampleManifest = snapshot.Manifest{
		Format: 1, Name: "prod-20261125t075000z", Cluster: "prod", ClusterID: "cdf818194e3a8c32", MemberID: "8e9e05c52164694d", Member: "m1",
		EtcdVersion: "3.6.16", Revision: 4711, TotalKeys: 1234, Object: "prod-20261125t075000z.db.zst",
		Size: 20 << 20, SHA256: "aa", StoredSize: 3 << 20, StoredSHA256: "bb",
		StartedAt: time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC), TakenAt: time.Date(2026, 11, 25, 7, 50, 1, 5e8, time.UTC),
	}
	exampleVerification = snapshot.Verification{
		Format: 1, Name: "prod-20261125t075000z", Mode: snapshot.ModeRestore, At: time.Date(2026, 11, 25, 7, 51, 0, 0, time.UTC),
		SHA256: "aa", EtcdVersion: "3.6.16", Hash: 42,
	}
	exampleStored = []snapshot.Stored{
		{Manifest: exampleManifest, Verification: &exampleVerification},
		{Manifest: snapshot.Manifest{
			Name: "etcd-20261124t075000z", ClusterID: "1f", EtcdVersion: "3.5.35", Revision: 5, TotalKeys: 1, Size: 20 << 10, StoredSize: 512, Encrypted: true,
			TakenAt: time.Date(2026, 11, 24, 7, 50, 0, 0, time.FixedZone("CET", 3600)),
		}},
		{Manifest: snapshot.Manifest{Name: "torn"}, Damaged: errors.New("/backups/torn.manifest.json is no manifest")},
	}
)

// TestSnapshotOutput holds what people and programs read.
func TestSnapshotOutput(t *testing.T) {
	t.Parallel()
	three := snapshot.RestoreOptions{
		Name: "m1", DataDir: "/var/lib/etcd", PeerURLs: []string{"http://10.0.0.1:2380"},
		InitialCluster: "m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380",
	}
	alone := snapshot.RestoreOptions{Name: "default", DataDir: "/var/lib/etcd", InitialCluster: "default=http://localhost:2380"}
	cases := map[string]struct {
		reason string
		show   func(out, aside io.Writer) error
		out    string
		aside  string
	}{
		"Saved": {
			reason: "where it is, what it is, and what comes next",
			show: func(out, _ io.Writer) error {
				return printSaved(out, "/backups/prod-20261125t075000z.db.zst", exampleManifest, "/my backups")
			},
			out: `
Saved snapshot prod-20261125t075000z
  data      /backups/prod-20261125t075000z.db.zst
  revision  4711, with 1234 keys
  size      20 MiB, stored in 3.0 MiB
  etcd      3.6.16, member m1 of cluster cdf818194e3a8c32

It is not verified yet:

  quorate snapshot verify prod-20261125t075000z --store '/my backups'
`,
		},
		"Table": {
			reason: "a line each, newest first, and what is damaged is told",
			show: func(out, aside io.Writer) error {
				return (&listOptions{output: outputFlag{"table"}}).show(out, aside, exampleStored)
			},
			out: `
NAME                    TAKEN                  CLUSTER   REVISION   SIZE     VERSION   VERIFIED
prod-20261125t075000z   2026-11-25T07:50:01Z   prod      4711       20 MiB   3.6.16    Restore
etcd-20261124t075000z   2026-11-24T06:50:00Z   -         5          20 KiB   3.5.35    -
torn                    -                      -         -          -        -         damaged
`,
			aside: "Warning: /backups/torn.manifest.json is no manifest\n",
		},
		"Wide": {
			reason: "more of each",
			show: func(out, aside io.Writer) error {
				return (&listOptions{output: outputFlag{"wide"}}).show(out, aside, exampleStored[:2])
			},
			out: `
NAME                    TAKEN                  CLUSTER   REVISION   SIZE     VERSION   VERIFIED   VERIFIED-AT            KEYS   STORED    ENCRYPTED   MEMBER   CLUSTER-ID
prod-20261125t075000z   2026-11-25T07:50:01Z   prod      4711       20 MiB   3.6.16    Restore    2026-11-25T07:51:00Z   1234   3.0 MiB   false       m1       cdf818194e3a8c32
etcd-20261124t075000z   2026-11-24T06:50:00Z   -         5          20 KiB   3.5.35    -          -                      1      512 B     true        -        1f
`,
		},
		"Empty": {
			reason: "an empty table looks like a fault",
			show: func(out, aside io.Writer) error {
				return (&listOptions{store: storeFlag{"/backups"}, output: outputFlag{"table"}}).show(out, aside, nil)
			},
			aside: "There are no snapshots in /backups.\n",
		},
		"EmptyJSON": {
			reason: "an empty list is a list",
			show: func(out, aside io.Writer) error {
				return (&listOptions{output: outputFlag{"json"}}).show(out, aside, nil)
			},
			out: "\n[]\n",
		},
		"JSON": {
			reason: "all that is known",
			show: func(out, aside io.Writer) error {
				return (&listOptions{output: outputFlag{"json"}}).show(out, aside, exampleStored[:1])
			},
			out: `
[
  {
    "manifest": {
      "format": 1,
      "name": "prod-20261125t075000z",
      "cluster": "prod",
      "clusterID": "cdf818194e3a8c32",
      "memberID": "8e9e05c52164694d",
      "member": "m1",
      "etcdVersion": "3.6.16",
      "revision": 4711,
      "totalKeys": 1234,
      "object": "prod-20261125t075000z.db.zst",
      "size": 20971520,
      "sha256": "aa",
      "storedSize": 3145728,
      "storedSHA256": "bb",
      "startedAt": "2026-11-25T07:50:00Z",
      "takenAt": "2026-11-25T07:50:01.5Z"
    },
    "verification": {
      "format": 1,
      "name": "prod-20261125t075000z",
      "mode": "Restore",
      "at": "2026-11-25T07:51:00Z",
      "sha256": "aa",
      "etcdVersion": "3.6.16",
      "hash": 42
    }
  }
]
`,
		},
		"Verified": {
			reason: "what was done",
			show:   func(out, _ io.Writer) error { return printVerified(out, exampleManifest, exampleVerification, false) },
			out: `
Verified snapshot prod-20261125t075000z: restored, and etcd 3.6.16 serves 1234 keys at revision 4711 with the hash of the snapshot.
`,
		},
		"VerifiedHash": {
			reason: "and what was not",
			show: func(out, _ io.Writer) error {
				return printVerified(out, exampleManifest, snapshot.Verification{Mode: snapshot.ModeHash}, false)
			},
			out: `
Verified snapshot prod-20261125t075000z: all sizes and hashes are as they were written. It was not restored.
`,
		},
		"VerifiedClosed": {
			reason: "without the identity less is known",
			show: func(out, _ io.Writer) error {
				return printVerified(out, snapshot.Manifest{Name: "a", Encrypted: true}, snapshot.Verification{Mode: snapshot.ModeHash}, false)
			},
			out: `
Verified snapshot a: size and hash of what is stored are as they were written. It was not decrypted; --identity does that.
`,
		},
		"VerifiedOpened": {
			reason: "with it all is compared",
			show: func(out, _ io.Writer) error {
				return printVerified(out, snapshot.Manifest{Name: "a", Encrypted: true}, snapshot.Verification{Mode: snapshot.ModeHash}, true)
			},
			out: `
Verified snapshot a: all sizes and hashes are as they were written. It was not restored.
`,
		},
		"Described": {
			reason: "a file of another tool",
			show: func(out, _ io.Writer) error {
				return printDescribed(out, "s.db", snapshot.Description{Revision: 7, TotalKeys: 1, Size: 20 << 10, StorageVersion: "3.6.0"})
			},
			out: `
s.db is whole: etcd's hash at its end is right, and every key can be read. It was not restored.
  revision  7, with 1 key
  size      20 KiB
  etcd      3.6 or newer can read it
`,
		},
		"Described35": {
			reason: "etcd 3.5 writes no version",
			show: func(out, _ io.Writer) error {
				return printDescribed(out, "s.db", snapshot.Description{Revision: 7, TotalKeys: 2, Size: 20 << 10})
			},
			out: `
s.db is whole: etcd's hash at its end is right, and every key can be read. It was not restored.
  revision  7, with 2 keys
  size      20 KiB
  etcd      3.5 or newer can read it
`,
		},
		"Stopped": {
			reason: "what is left, before anything is made of it",
			show: func(out, _ io.Writer) error {
				return printStopped(out, "/var/lib/etcd.lost", snapshot.StoppedState{
					ClusterID: "e5b6451689bd09ab", MemberID: "a1ac6fbc2f6ccbb0", Member: "m1", Term: 2, LastIndex: 4711, CommitIndex: 4709,
					DatabaseIndex: 4650, DatabaseRevision: 4643, EtcdVersion: "3.6", LastWrite: time.Date(2026, 11, 25, 7, 59, 12, 0, time.UTC), Size: 122 << 20,
				})
			},
			out: `
Data directory /var/lib/etcd.lost
  member    m1 (a1ac6fbc2f6ccbb0) of cluster e5b6451689bd09ab
  etcd      3.6
  log       up to entry 4711 of term 2, last written at 2026-11-25T07:59:12Z
  committed up to entry 4709, as far as the member has heard
  database  up to entry 4650, revision 4643
  size      122 MiB

A snapshot of it has every write that is in the log, whether the member has heard that it is committed or not. What the other members
acknowledged without this one is not in it, and nothing here tells how much that is. Where several such data directories of one cluster
are left, the one with the highest term has the most, and of those the one with the highest entry.

`,
		},
		"StoppedOdd": {
			reason: "what is out of the ordinary is told",
			show: func(out, _ io.Writer) error {
				return printStopped(out, "d", snapshot.StoppedState{Learner: true, Unreadable: 311, LastIndex: 1, Term: 1})
			},
			out: `
Data directory d
  member    without a name () of cluster , a learner
  etcd      of an unknown version
  log       up to entry 1 of term 1, last written at 0001-01-01T00:00:00Z; 311 bytes behind it cannot be read
  committed up to entry 0, as far as the member has heard
  database  up to entry 0, revision 0
  size      0 B

A snapshot of it has every write that is in the log, whether the member has heard that it is committed or not. What the other members
acknowledged without this one is not in it, and nothing here tells how much that is. Where several such data directories of one cluster
are left, the one with the highest term has the most, and of those the one with the highest entry.

`,
		},
		"Restored": {
			reason: "one member is no cluster yet",
			show: func(out, _ io.Writer) error {
				return printRestored(out, restored{Snapshot: "prod-1", DataDir: "/var/lib/etcd", Next: "etcd ..."}, three)
			},
			out: `
Restored prod-1 into /var/lib/etcd as member m1.

Restore the other members from prod-1 too, each where it will run, with the same --initial-cluster and
--initial-cluster-token. Then start all of them, with the TLS flags that they had; this one with:

  etcd ...
`,
		},
		"RestoredAlone": {
			reason: "a cluster of one",
			show: func(out, _ io.Writer) error {
				return printRestored(out, restored{Snapshot: "prod-1", DataDir: "/var/lib/etcd", Next: "etcd ..."}, alone)
			},
			out: `
Restored prod-1 into /var/lib/etcd as member default.

Start it, with the TLS flags that it had:

  etcd ...
`,
		},
		"Announced": {
			reason: "what was chosen, before anything is written",
			show: func(_, aside io.Writer) error {
				return errors.Join(announce(aside, exampleStored[0]), announce(aside, exampleStored[1]))
			},
			aside: `Restoring snapshot prod-20261125t075000z: taken at 2026-11-25T07:50:01Z from cluster prod cdf818194e3a8c32, etcd 3.6.16, revision 4711. It was verified (Restore) at 2026-11-25T07:51:00Z.
Restoring snapshot etcd-20261124t075000z: taken at 2026-11-24T06:50:00Z from cluster 1f, etcd 3.5.35, revision 5. It was never verified.
`,
		},
		"WouldPrune": {
			reason: "nothing goes without a word",
			show: func(out, aside io.Writer) error {
				return (&pruneOptions{output: outputFlag{"table"}}).show(out, aside, exampleStored[1:2])
			},
			out: `
NAME                    TAKEN                  CLUSTER   REVISION   SIZE     VERSION   VERIFIED
etcd-20261124t075000z   2026-11-24T06:50:00Z   -         5          20 KiB   3.5.35    -
`,
			aside: "\n1 snapshot would be deleted. To delete, repeat the command with --yes.\n",
		},
		"Pruned": {
			reason: "what went",
			show: func(out, aside io.Writer) error {
				return (&pruneOptions{output: outputFlag{"table"}, yes: true}).show(out, aside, exampleStored[1:2])
			},
			out: `
NAME                    TAKEN                  CLUSTER   REVISION   SIZE     VERSION   VERIFIED
etcd-20261124t075000z   2026-11-24T06:50:00Z   -         5          20 KiB   3.5.35    -
`,
			aside: "\nDeleted 1 snapshot.\n",
		},
		"PrunedNone": {
			reason: "all stay",
			show: func(out, aside io.Writer) error {
				return (&pruneOptions{output: outputFlag{"table"}, yes: true}).show(out, aside, nil)
			},
			aside: "Nothing is to be deleted.\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, aside bytes.Buffer
			if err := tc.show(&out, &aside); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.out, "\n"), out.String()); diff != "" {
				t.Errorf("%s: standard output, -want, +got\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.aside, aside.String()); diff != "" {
				t.Errorf("%s: standard error, -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
