package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

func TestRestoreFlags(t *testing.T) {
	t.Parallel()
	const three = "--initial-cluster=m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=https://m3.example:2380"
	alone := snapshot.RestoreOptions{
		DataDir: "/d", Name: "default", InitialCluster: "default=http://localhost:2380", Token: "restored-20261125t075000z",
		PeerURLs: []string{"http://localhost:2380"}, BumpRevision: 1_000_000_000,
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   func(*snapshot.RestoreOptions)
		err    string
	}{
		"Alone": {reason: "one member needs no more than a directory", args: []string{"--data-dir=/d"}, want: func(*snapshot.RestoreOptions) {}},
		"OneOfThree": {
			reason: "its peer URL is that of its name",
			args:   []string{"--data-dir=/d", three, "--name=m2", "--initial-cluster-token=t"},
			want: func(o *snapshot.RestoreOptions) {
				o.InitialCluster, o.Name, o.Token, o.PeerURLs = strings.TrimPrefix(three, "--initial-cluster="), "m2", "t", []string{"http://10.0.0.2:2380"}
			},
		},
		"TwoURLs": {
			reason: "a member may have several",
			args:   []string{"--data-dir=/d", "--initial-cluster=m1=http://a:1,m1=http://b:1", "--name=m1", "--initial-cluster-token=t"},
			want: func(o *snapshot.RestoreOptions) {
				o.InitialCluster, o.Name, o.Token, o.PeerURLs = "m1=http://a:1,m1=http://b:1", "m1", "t", []string{"http://a:1", "http://b:1"}
			},
		},
		"Everything": {
			reason: "each flag arrives",
			args: []string{
				"--data-dir=/d", "--wal-dir=/w", "--etcd-version=3.6.16", "--bump-revision=5", "--quota-backend-bytes=7",
				"--initial-advertise-peer-urls=http://x:1",
			},
			want: func(o *snapshot.RestoreOptions) {
				o.WALDir, o.EtcdVersion, o.BumpRevision, o.QuotaBytes, o.PeerURLs = "/w", "3.6.16", 5, 7, []string{"http://x:1"}
			},
		},
		"KeepRevisions": {
			reason: "0 is no default",
			args:   []string{"--data-dir=/d", "--bump-revision=0", "--mark-compacted=false"},
			want:   func(o *snapshot.RestoreOptions) { o.BumpRevision, o.KeepRevisions = 0, true },
		},
		"NoDirectory":    {reason: "which", err: "--data-dir is missing"},
		"OtherName":      {reason: "a member of no cluster never starts", args: []string{"--data-dir=/d", three, "--name=m4"}, err: "--name m4 is not in --initial-cluster"},
		"NameLeftAway":   {reason: "default is none of three", args: []string{"--data-dir=/d", three}, err: "--name default is not in --initial-cluster"},
		"NoMember":       {reason: "what one looks like", args: []string{"--data-dir=/d", "--initial-cluster=m1"}, err: `"m1" is no member: write NAME=PEER-URL`},
		"NoScheme":       {reason: "what one looks like", args: []string{"--data-dir=/d", "--initial-cluster=m1=10.0.0.1:2380"}, err: `is no member: write NAME=PEER-URL`},
		"NoToken":        {reason: "three members with three tokens would be three clusters", args: []string{"--data-dir=/d", three, "--name=m1"}, err: "--initial-cluster-token is missing: write a word that no cluster had before, the same for each member, such as restored-20261125t075000z"},
		"MarkedAlone":    {reason: "there is no such restore", args: []string{"--data-dir=/d", "--bump-revision=0"}, err: "write both, or neither"},
		"BumpedUnmarked": {reason: "watches would miss what was bumped over", args: []string{"--data-dir=/d", "--mark-compacted=false"}, err: "write both, or neither"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r restoreFlags
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			r.flags(f)
			if err := f.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			got, err := r.read(time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := alone
			tc.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNextCommand(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   snapshot.RestoreOptions
		size   int64
		want   string
	}{
		"Address": {
			reason: "it listens where it is reached",
			args:   snapshot.RestoreOptions{Name: "m1", DataDir: "/var/lib/etcd", PeerURLs: []string{"http://10.0.0.1:2380"}},
			want: "etcd --name m1 --data-dir /var/lib/etcd --listen-peer-urls http://10.0.0.1:2380 --listen-client-urls http://10.0.0.1:2379 " +
				"--advertise-client-urls http://10.0.0.1:2379",
		},
		"HostName": {
			reason: "etcd listens on no name but localhost",
			args:   snapshot.RestoreOptions{Name: "m1", DataDir: "/data of m1", WALDir: "/w", PeerURLs: []string{"https://m1.example:12380"}},
			want: "etcd --name m1 --data-dir '/data of m1' --wal-dir /w --listen-peer-urls https://0.0.0.0:12380 --listen-client-urls https://0.0.0.0:12379 " +
				"--advertise-client-urls https://m1.example:12379",
		},
		"Large": {
			reason: "a database beyond the default quota takes no write",
			args:   snapshot.RestoreOptions{Name: "m1", DataDir: "/d", PeerURLs: []string{"http://localhost:2380"}},
			size:   3 << 30,
			want: "etcd --name m1 --data-dir /d --listen-peer-urls http://localhost:2380 --listen-client-urls http://localhost:2379 " +
				"--advertise-client-urls http://localhost:2379 --quota-backend-bytes 8589934592",
		},
		"Quota": {
			reason: "the quota that was asked for",
			args:   snapshot.RestoreOptions{Name: "m1", DataDir: "/d", PeerURLs: []string{"http://localhost:2380"}, QuotaBytes: 5 << 30},
			size:   3 << 30,
			want: "etcd --name m1 --data-dir /d --listen-peer-urls http://localhost:2380 --listen-client-urls http://localhost:2379 " +
				"--advertise-client-urls http://localhost:2379 --quota-backend-bytes 5368709120",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nextCommand(tc.args, tc.size)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
