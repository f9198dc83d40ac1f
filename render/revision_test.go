package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// clients sets what the spec says of the clients' port.
func clients(port api.ClientTLS) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.TLS = &api.TLS{Client: &port} }
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before func(c *api.EtcdCluster) // beside the minimal spec, when the Pod was made
		args   func(c *api.EtcdCluster) // since then
		want   []string
	}{
		"Same": {reason: "Nothing changed", args: func(*api.EtcdCluster) {}},
		"Version": {
			reason: "The version is compared as a version",
			args:   func(c *api.EtcdCluster) { c.Spec.Version = "v3.7.3" },
		},
		"TrustNeverRotated": {
			reason: "A cluster of an earlier release trusts its first authority, and so do its Pods",
			before: clients(api.ClientTLS{Mode: api.TLSManaged}),
			args: func(c *api.EtcdCluster) {
				c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSManaged, Authority: "a"}, Peer: api.TLSPlaneStatus{Mode: api.TLSManaged, Authority: "b"}}
			},
		},
		"TrustBoth": {
			reason: "etcd learns whom it trusts when it starts",
			args: func(c *api.EtcdCluster) {
				c.Status.TLS = &api.TLSStatus{
					Client: api.TLSPlaneStatus{Mode: api.TLSManaged, Trusts: []string{"a", "n"}},
					Peer:   api.TLSPlaneStatus{Mode: api.TLSManaged, Trusts: []string{"b", "m"}},
				}
			},
			before: func(c *api.EtcdCluster) { c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged}} },
			want:   []string{PartClientTrust, PartPeerTrust},
		},
		"TrustOfManagedAlone": {
			reason: "With plain text for clients no authority is trusted, and one of before is no reason to recreate a Pod",
			args: func(c *api.EtcdCluster) {
				c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSDisabled, Trusts: []string{"a"}}, Peer: api.TLSPlaneStatus{Mode: api.TLSDisabled}}
			},
		},
		"ClientsOn": {
			reason: "Clients need TLS",
			args:   clients(api.ClientTLS{Mode: api.TLSManaged}),
			want:   []string{PartClientPort},
		},
		"ClientsOff": {
			reason: "Clients need no TLS any more; who is trusted does not matter then",
			before: func(c *api.EtcdCluster) {
				clients(api.ClientTLS{Mode: api.TLSManaged})(c)
				c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSManaged, Trusts: []string{"n"}}}
			},
			args: clients(api.ClientTLS{Mode: api.TLSDisabled}),
			want: []string{PartClientPort},
		},
		"ClientsBoth": {
			reason: "Clients may go without TLS",
			before: clients(api.ClientTLS{Mode: api.TLSManaged}),
			args:   clients(api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed}),
			want:   []string{PartClientPort},
		},
		"ClientsRefused": {
			reason: "A default that is written out, and names that go into certificates",
			before: clients(api.ClientTLS{Mode: api.TLSManaged}),
			args:   clients(api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextRefused, AltNames: []api.AltName{"a"}, RotateAuthority: "b"}),
		},
		"ClientsDisabled": {
			reason: "The same of the mode",
			args:   clients(api.ClientTLS{Mode: api.TLSDisabled}),
		},
		"ClientsOwn": {
			reason: "From Quorate's Secrets to others'",
			before: clients(api.ClientTLS{Mode: api.TLSManaged}),
			args:   clients(ownSecrets("a", "b")),
			want:   []string{PartClientPort},
		},
		"ClientsOwnOther": {
			reason: "Others have another name",
			before: clients(ownSecrets("a", "b")),
			args:   clients(ownSecrets("c", "b")),
			want:   []string{PartClientPort},
		},
		"ClientsOwnOperator": {
			reason: "No Pod mounts the operator's Secret",
			before: clients(ownSecrets("a", "b")),
			args:   clients(ownSecrets("a", "c")),
		},
		"TrustNew": {
			reason: "The former one is trusted no more by clients' port, and nothing changes for peers",
			before: func(c *api.EtcdCluster) {
				clients(api.ClientTLS{Mode: api.TLSManaged})(c)
				c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Trusts: []string{"a", "n"}}, Peer: api.TLSPlaneStatus{Trusts: []string{"b", "m"}}}
			},
			args: func(c *api.EtcdCluster) {
				c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Trusts: []string{"n"}}, Peer: api.TLSPlaneStatus{Trusts: []string{"b", "m"}}}
			},
			want: []string{PartClientTrust},
		},
		"NoPartOfThePod": {
			reason: "Size, metadata, retention, recovery and replicas are not what a Pod is made of",
			args: func(c *api.EtcdCluster) {
				c.Spec.Replicas, c.Spec.Suspend = new(int32(5)), true
				c.Spec.Storage.Size = resource.MustParse("2Gi")
				c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionDelete, WhenScaled: api.RetentionRetain}
				c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(api.Duration("1m"))}
				c.Spec.AdditionalMetadata = &api.Metadata{Labels: map[string]string{"a": "b"}}
				c.Spec.Pod = &api.Pod{Metadata: &api.Metadata{Labels: map[string]string{"a": "b"}}}
			},
		},
		"DefaultsWrittenOut": {
			reason: "A default that is written out is no change",
			args: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{Repository: "gcr.io/etcd-development/etcd", Tag: "v{version}", PullPolicy: corev1.PullIfNotPresent}
				c.Spec.Options = &api.Options{SnapshotCount: new(int64(10000)), HeartbeatInterval: new(api.Duration("100ms"))}
				c.Spec.Resources, c.Spec.Scheduling = &api.Resources{}, &api.Scheduling{}
				c.Spec.Pod = &api.Pod{ServiceAccountName: "default", SecurityContext: &api.PodSecurityContext{
					RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
				}}
				c.Spec.Storage.Medium = api.MediumDisk
			},
			want: nil,
		},
		"SameInOtherWords": {
			reason: "1s and 1000ms, our selector, 1Gi and 1024Mi, 0.5 and 500m",
			before: func(c *api.EtcdCluster) {
				c.Spec.Options = &api.Options{ElectionTimeout: new(api.Duration("2s")), QuotaBackendSize: new(resource.MustParse("512Mi"))}
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1Gi")}}
				c.Spec.Scheduling = &api.Scheduling{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack"}}}
			},
			args: func(c *api.EtcdCluster) {
				c.Spec.Options = &api.Options{ElectionTimeout: new(api.Duration("2000ms")), QuotaBackendSize: new(resource.MustParse("536870912"))}
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1024Mi")}}
				members := &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelCluster: c.Name}}
				c.Spec.Scheduling = &api.Scheduling{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", LabelSelector: members}}}
			},
		},
		"TenTimesMore": {
			reason: "Zeros at the end count",
			before: func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Limits: quantities("cpu", "1"), Requests: quantities("memory", "100")}
			},
			args: func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Limits: quantities("cpu", "10"), Requests: quantities("memory", "100")}
			},
			want: []string{"resources"},
		},
		"LimitForRequest": {
			reason: "A limit is no request",
			before: func(c *api.EtcdCluster) { c.Spec.Resources = &api.Resources{Limits: quantities("cpu", "1")} },
			args:   func(c *api.EtcdCluster) { c.Spec.Resources = &api.Resources{Requests: quantities("cpu", "1")} },
			want:   []string{"resources"},
		},
		"Everything": {
			reason: "The names are sorted",
			args: func(c *api.EtcdCluster) {
				c.Spec.Scheduling = &api.Scheduling{PriorityClassName: "high"}
				c.Spec.Resources = &api.Resources{Requests: quantities("cpu", "1")}
				c.Spec.Options = &api.Options{Flags: map[string]string{"pre-vote": "true"}}
				c.Spec.Image = &api.Image{Digests: []api.ImageDigest{{Version: c.Spec.Version, Digest: "sha256:x"}}}
			},
			want: []string{"image", "options", "resources", "scheduling"},
		},
		"DigestOfAnotherVersion": {
			reason: "What does not run need not be changed",
			args: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{Digests: []api.ImageDigest{{Version: "3.5.35", Digest: "sha256:x"}}}
			},
		},
		"Tag": {
			reason: "Another tag is another image",
			args:   func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Tag: "{version}-r2"} },
			want:   []string{"image"},
		},
		"PodUsersOfPlatform": {
			reason: "An empty security context is another one than the default",
			args:   func(c *api.EtcdCluster) { c.Spec.Pod = &api.Pod{SecurityContext: &api.PodSecurityContext{}} },
			want:   []string{"pod"},
		},
		"PodAccount": {
			reason: "A Pod keeps its ServiceAccount for ever",
			args:   func(c *api.EtcdCluster) { c.Spec.Pod = &api.Pod{ServiceAccountName: "members"} },
			want:   []string{"pod"},
		},
		"PodNoMore": {
			reason: "The part of a Pod that names it, and is the zero value by now",
			before: func(c *api.EtcdCluster) { c.Spec.Pod = &api.Pod{ServiceAccountName: "members"} },
			args:   func(c *api.EtcdCluster) { c.Spec.Pod = &api.Pod{} },
			want:   []string{"pod"},
		},
		"MemorySize": {
			reason: "The limit of the tmpfs is part of the Pod",
			before: func(c *api.EtcdCluster) { c.Spec.Storage.Medium = api.MediumMemory },
			args:   func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("2Gi") },
			want:   []string{"storage"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			if tc.before != nil {
				tc.before(c)
			}
			pod := livePod(t, c, firstMember(c))
			tc.args(c)
			if diff := cmp.Diff(tc.want, Outdated(c, pod)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("OptionsAsWritten", func(t *testing.T) {
		t.Parallel()
		// What the first days' release made of these, which hashed flags under the names of the
		// spec.
		c, pod := load(t, "version-3.5"), &corev1.Pod{}
		c.Spec.Options = &api.Options{Flags: map[string]string{"experimental-compaction-batch-limit": "500"}}
		old := revision(c).with(parts{{"options", hash([]string{
			"--heartbeat-interval=100", "--election-timeout=1000", "--snapshot-count=10000", "--experimental-compaction-batch-limit=500",
		})}}, "options")
		pod.Annotations = map[string]string{api.AnnotationRevision: old.String()}
		if diff := cmp.Diff([]string(nil), Outdated(c, pod)); diff != "" {
			t.Errorf("a Pod that an earlier release made of the same options: -want, +got\n%s", diff)
		}
		c.Spec.Options.Flags["experimental-compaction-batch-limit"] = "501"
		if diff := cmp.Diff([]string{"options"}, Outdated(c, pod)); diff != "" {
			t.Errorf("and of others: -want, +got\n%s", diff)
		}
	})
	t.Run("NoRevision", func(t *testing.T) {
		t.Parallel()
		want := []string{"image", "options", "resources", "scheduling", "storage"}
		if diff := cmp.Diff(want, Outdated(load(t, "minimal"), &corev1.Pod{})); diff != "" {
			t.Errorf("a Pod that does not say what it was made of: -want, +got\n%s", diff)
		}
	})
}

func quantities(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

// TestPartsOfLater: a part of the spec that came after the first release is named in the record of
// a Pod only where it has a value. So a Pod of a release that did not know it stays as it is.
func TestPartsOfLater(t *testing.T) {
	t.Parallel()
	first := []string{"image", "options", "resources", "scheduling", "storage"} // of the first release
	for _, name := range cases(t) {
		c := load(t, name)
		var record parts
		for _, p := range revision(c) {
			if slices.Contains(first, p.name) {
				record = append(record, p)
			}
		}
		pod := livePod(t, c, firstMember(c))
		pod.Annotations[api.AnnotationRevision] = record.String()
		var want []string
		if c.Spec.Pod != nil { // the golden cases that have a later part
			want = []string{"pod"}
		}
		if diff := cmp.Diff(want, Outdated(c, pod)); diff != "" {
			t.Errorf("%s: a Pod whose record has the parts of the first release: -want, +got\n%s", name, diff)
		}
	}
}
