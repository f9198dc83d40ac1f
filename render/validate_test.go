package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// invalid are changes that make a good EtcdCluster a bad one, on every version of etcd.
var invalid = map[string]struct {
	reason string
	args   func(c *api.EtcdCluster)
	want   string
}{
	"NameTooLong": {
		reason: "The Service for clients would have no valid name",
		args:   func(c *api.EtcdCluster) { c.Name = strings.Repeat("a", 57) },
		want:   "metadata.name is too long: at most 56 characters",
	},
	"NameWithDot": {
		reason: "A DNS subdomain is a valid name of an object, but not of a Service",
		args:   func(c *api.EtcdCluster) { c.Name = "a.b" },
		want:   "metadata.name must be a DNS label that starts with a letter",
	},
	"NameStartsWithDigit": {
		reason: "A Service's name starts with a letter",
		args:   func(c *api.EtcdCluster) { c.Name = "1a" },
		want:   "metadata.name must be a DNS label that starts with a letter",
	},
	"ReplicasNegative": {
		reason: "Less than nothing",
		args:   func(c *api.EtcdCluster) { c.Spec.Replicas = new(int32(-1)) },
		want:   "spec.replicas must be from 0 to 9",
	},
	"ReplicasTooMany": {
		reason: "More voters make etcd slower, not safer",
		args:   func(c *api.EtcdCluster) { c.Spec.Replicas = new(int32(10)) },
		want:   "spec.replicas must be from 0 to 9",
	},
	"HibernateInMemory": {
		reason: "There are no volumes to hibernate on",
		args: func(c *api.EtcdCluster) {
			c.Spec.Replicas, c.Spec.Storage.Medium = new(int32(0)), api.MediumMemory
		},
		want: "spec.replicas 0 hibernates the cluster on its volumes",
	},
	"VersionWord":        {reason: "No version", args: atVersion("latest"), want: "must be MAJOR.MINOR.PATCH"},
	"VersionShort":       {reason: "No patch", args: atVersion("3.6"), want: "must be MAJOR.MINOR.PATCH"},
	"VersionPreRelease":  {reason: "No release", args: atVersion("3.7.0-rc.1"), want: "must be MAJOR.MINOR.PATCH"},
	"VersionTwoV":        {reason: "One v at most", args: atVersion("vv3.6.16"), want: "must be MAJOR.MINOR.PATCH"},
	"VersionLeadingZero": {reason: "No semantic version", args: atVersion("3.6.016"), want: "must be MAJOR.MINOR.PATCH"},
	"VersionOld":         {reason: "Not supported by etcd either", args: atVersion("3.4.30"), want: "Quorate runs etcd 3.5, 3.6 and 3.7"},
	"VersionNew":         {reason: "Its flags are not known", args: atVersion("v3.9.0"), want: "Quorate runs etcd 3.5, 3.6 and 3.7"},
	"VersionUnready":     {reason: "Its /readyz knows no learners", args: atVersion("3.5.18"), want: "etcd 3.5 is supported from 3.5.19 on"},
	"ImageWithTag": {
		reason: "The tag is made of the version",
		args:   func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: "example.com/etcd:v3.6.16"} },
		want:   "spec.image.repository must be an image name without tag or digest",
	},
	"DigestShort": {
		reason: "The kubelet would not accept the reference",
		args:   func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Digest: "sha256:abc"} },
		want:   "spec.image.digest must be sha256: and 64 lower-case hexadecimal digits",
	},
	"PullPolicy": {
		reason: "Not one of Kubernetes",
		args:   func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{PullPolicy: "Sometimes"} },
		want:   "spec.image.pullPolicy must be Always, IfNotPresent or Never",
	},
	"PullSecretUnnamed": {
		reason: "A reference to nothing",
		args:   func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{PullSecrets: []api.SecretReference{{}}} },
		want:   "spec.image.pullSecrets: every entry names a Secret",
	},
	"StorageZero":     {reason: "No room", args: size("0"), want: "spec.storage.size must be at least 256Mi"},
	"StorageNegative": {reason: "Less than no room", args: size("-1Gi"), want: "spec.storage.size must be at least 256Mi"},
	"StorageTooSmall": {reason: "No room for the write-ahead log", args: size("255Mi"), want: "spec.storage.size must be at least 256Mi"},
	"MediumUnknown": {
		reason: "Not one of ours",
		args:   func(c *api.EtcdCluster) { c.Spec.Storage.Medium = "Paper" },
		want:   "spec.storage.medium must be Disk or Memory",
	},
	"MemoryWithRetention": {
		reason: "There is nothing to retain",
		args: func(c *api.EtcdCluster) {
			c.Spec.Storage.Medium, c.Spec.Storage.Retention = api.MediumMemory, &api.Retention{}
		},
		want: "spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes",
	},
	"MemoryWithChangePolicy": {
		reason: "There is nothing to replace",
		args: func(c *api.EtcdCluster) {
			c.Spec.Storage.Medium, c.Spec.Storage.ChangePolicy = api.MediumMemory, api.ChangeExpand
		},
		want: "spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes",
	},
	"ChangePolicyUnknown": {
		reason: "Not one of ours",
		args:   func(c *api.EtcdCluster) { c.Spec.Storage.ChangePolicy = "Move" },
		want:   "spec.storage.changePolicy must be Expand or Replace",
	},
	"RetentionUnknown": {
		reason: "Not one of ours",
		args:   func(c *api.EtcdCluster) { c.Spec.Storage.Retention = &api.Retention{WhenDeleted: "Maybe"} },
		want:   "spec.storage.retention.whenDeleted must be Retain or Delete",
	},
	"ResourceUnknown": {
		reason: "Only cpu, memory and ephemeral storage",
		args: func(c *api.EtcdCluster) {
			c.Spec.Resources = &api.Resources{Limits: quantities("example.com/gpu", "1")}
		},
		want: "spec.resources.limits takes cpu, memory and ephemeral-storage",
	},
	"RequestUnknown": {
		reason: "Only cpu, memory and ephemeral storage",
		args: func(c *api.EtcdCluster) {
			c.Spec.Resources = &api.Resources{Requests: quantities("example.com/gpu", "1")}
		},
		want: "spec.resources.requests takes cpu, memory and ephemeral-storage",
	},
	"RequestOverLimit": {
		reason: "The API server would refuse the Pod",
		args: func(c *api.EtcdCluster) {
			c.Spec.Resources = &api.Resources{Requests: quantities("cpu", "2"), Limits: quantities("cpu", "1500m")}
		},
		want: "spec.resources.requests must not be more than spec.resources.limits",
	},
	"HeartbeatForm": {
		reason: "etcd takes whole milliseconds",
		args: func(c *api.EtcdCluster) {
			c.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("1.5s"))}
		},
		want: "spec.options.heartbeatInterval must be whole milliseconds or seconds",
	},
	"HeartbeatZero": {
		reason: "A leader that is never silent",
		args: func(c *api.EtcdCluster) {
			c.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("0ms"))}
		},
		want: "spec.options.heartbeatInterval must be whole milliseconds or seconds",
	},
	"ElectionTooLong": {
		reason: "etcd refuses more than 50 seconds",
		args:   func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{ElectionTimeout: new(api.Duration("51s"))} },
		want:   "spec.options.electionTimeout must be whole milliseconds or seconds",
	},
	"ElectionTooSoon": {
		reason: "etcd refuses less than five heartbeats",
		args: func(c *api.EtcdCluster) {
			c.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("201ms"))}
		},
		want: "spec.options.electionTimeout (default 1s) must be at least five times",
	},
	"QuotaTooSmall": {
		reason: "Too small for anything",
		args: func(c *api.EtcdCluster) {
			c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("1Mi"))}
		},
		want: "spec.options.quotaBackendSize must be from 16Mi to 100Gi",
	},
	"QuotaOfTheVolume": {
		reason: "The disk would be full before etcd noticed",
		args: func(c *api.EtcdCluster) {
			c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("1Gi"))}
		},
		want: "spec.options.quotaBackendSize must be smaller than spec.storage.size",
	},
	"SnapshotCount": {
		reason: "A snapshot for every write",
		args:   func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(1))} },
		want:   "spec.options.snapshotCount must be from 100 to 1000000",
	},
	"CompactionPeriod": {
		reason: "A number alone would be hours, which is easily forgotten",
		args:   compaction(api.CompactionPeriodic, "8"),
		want:   "spec.options.autoCompaction.retention: with mode Periodic",
	},
	"CompactionRevisions": {
		reason: "A time is no number of revisions",
		args:   compaction(api.CompactionRevision, "8h"),
		want:   "spec.options.autoCompaction.retention: with mode Periodic",
	},
	"FlagName": {
		reason: "Dashes in front are ours",
		args:   flags("--max-request-bytes", "1"),
		want:   "spec.options.flags: write the names as etcd --help does",
	},
	"FlagValue": {
		reason: "Bounded, so that the Pod stays small",
		args:   flags("cors", strings.Repeat("x", 1025)),
		want:   "spec.options.flags: a value has at most 1024 characters",
	},
	"FlagIdentity":  {reason: "Quorate's", args: flags("name", "x"), want: "spec.options.flags: Quorate decides the identity of a member"},
	"FlagURL":       {reason: "Quorate's", args: flags("listen-client-http-urls", "x"), want: "spec.options.flags: Quorate decides the identity of a member"},
	"FlagFormation": {reason: "Quorate's", args: flags("initial-cluster-state", "new"), want: "spec.options.flags: Quorate decides the identity of a member"},
	"FlagNewCluster": {
		reason: "It would forget all other members at every start",
		args:   flags("force-new-cluster", "true"),
		want:   "spec.options.flags: Quorate keeps the checks on",
	},
	"FlagNoSync": {
		reason: "Writes that were told to be safe would be lost",
		args:   flags("unsafe-no-fsync", "true"),
		want:   "spec.options.flags: Quorate keeps the checks on",
	},
	"FlagReconfig": {
		reason: "etcd would let a change lose the quorum",
		args:   flags("strict-reconfig-check", "false"),
		want:   "spec.options.flags: Quorate keeps the checks on",
	},
	"FlagLog":   {reason: "kubectl logs would be empty", args: flags("log-outputs", "/tmp/x"), want: "spec.options.flags: members log to standard error"},
	"FlagField": {reason: "One place for each option", args: flags("snapshot-count", "1"), want: "have fields of their own"},
	"ClientSecretAlone": {
		reason: "Quorate could not ask the members",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "a"}}}
		},
		want: "spec.tls.client.secretRef and spec.tls.client.operatorSecretRef are for mode Secret",
	},
	"PeerSecretMissing": {
		reason: "There is nothing to mount",
		args:   func(c *api.EtcdCluster) { c.Spec.TLS = &api.TLS{Peer: &api.PeerTLS{Mode: api.TLSSecret}} },
		want:   "spec.tls.peer.secretRef is for mode Secret",
	},
	"TLSMode": {
		reason: "A mode that is to come is not taken for none",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: "Issuer"}, Peer: &api.PeerTLS{Mode: "Issuer"}}
		},
		want: "spec.tls.client.mode must be Managed, Secret or Disabled; spec.tls.peer.mode must be Managed, Secret or Disabled",
	},
	"AltName": {
		reason: "A certificate has names, no URLs",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged, AltNames: []api.AltName{"https://etcd.example.com"}}}
		},
		want: "spec.tls.client.altNames: each is a DNS name in lower case",
	},
	"AltNameOfOthers": {
		reason: "They would go nowhere",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled, AltNames: []api.AltName{"etcd.example.com"}}}
		},
		want: "spec.tls.client.altNames go into certificates that Quorate issues",
	},
	"RotationOfOthers": {
		reason: "What others issue they rotate",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled, RotateAuthority: "a"}, Peer: &api.PeerTLS{Mode: api.TLSDisabled, RotateAuthority: "a"}}
		},
		want: "spec.tls.client.rotateAuthority and spec.tls.client.rotationWait are for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager); spec.tls.peer.rotateAuthority is for mode Managed",
	},
	"RotationWait": {
		reason: "A day has 24 hours",
		args: func(c *api.EtcdCluster) {
			c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged, RotationWait: new(api.Duration("7d"))}}
		},
		want: "spec.tls.client.rotationWait must be whole seconds, minutes or hours from 0s to 8760h, for example 168h",
	},
	"FlagTLS": {reason: "TLS is more than a flag", args: flags("cert-file", "/x"), want: "spec.options.flags: TLS is configured in spec.tls"},
	"SpreadWithoutSelector": {
		reason: "It counts no Pods",
		args: func(c *api.EtcdCluster) {
			c.Spec.Scheduling = &api.Scheduling{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
			}}}
		},
		want: "spec.scheduling.topologySpreadConstraints: each needs a labelSelector",
	},
	"NodeSelector": {
		reason: "No label can be so",
		args: func(c *api.EtcdCluster) {
			c.Spec.Scheduling = &api.Scheduling{NodeSelector: map[string]string{"disk": "very fast"}}
		},
		want: "spec.scheduling.nodeSelector: a key is an optional DNS prefix",
	},
	"LabelOwned": {
		reason: "Selectors and tools read it",
		args:   metadata(map[string]string{"etcd.quorate.dev/cluster": "x"}, nil),
		want:   "metadata.labels: keys under etcd.quorate.dev/ and app.kubernetes.io/",
	},
	"LabelForm": {
		reason: "The API server would refuse every object",
		args:   metadata(map[string]string{"a": "not a value"}, nil),
		want:   "metadata.labels: a key is an optional DNS prefix",
	},
	"AnnotationOwned": {
		reason: "Quorate keeps the members' identity there",
		args:   metadata(nil, map[string]string{"etcd.quorate.dev/member-id": "x"}),
		want:   "metadata.annotations: keys under etcd.quorate.dev/",
	},
	"AnnotationForm": {
		reason: "The API server would refuse every object",
		args:   metadata(nil, map[string]string{"a b": "x"}),
		want:   "metadata.annotations: a key is an optional DNS prefix",
	},
	"AnnotationSize": {
		reason: "All annotations of an object have 256 KiB",
		args:   metadata(nil, map[string]string{"a": strings.Repeat("x", 4097)}),
		want:   "metadata.annotations: a value has at most 4096 characters",
	},
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range invalid {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			tc.args(c)
			got := text(Validate(c))
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
			if strings.ContainsAny(got, "\n") {
				t.Errorf("%s: a condition's message is one line: %q", tc.reason, got)
			}
			ofAll := slices.ContainsFunc([]string{"metadata.", "spec.replicas"}, func(part string) bool { return strings.HasPrefix(tc.want, part) })
			if _, err := Static(c, State{}); (err != nil) != ofAll {
				t.Errorf("%s: Static says %q, and of what it is made something is wrong: %t", tc.reason, text(err), ofAll)
			}
			if _, err := Pod(c, Member{Name: "mini-0", Version: "3.6.16"}); err == nil && !strings.HasPrefix(name, "Version") {
				t.Errorf("%s: Pod renders it", tc.reason)
			}
		})
	}
}

// TestUncountable is about quantities that parse and cannot be computed with: comparing them would
// take minutes or all memory.
func TestUncountable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args func(c *api.EtcdCluster, q resource.Quantity)
		want string
	}{
		"Size": {
			args: func(c *api.EtcdCluster, q resource.Quantity) { c.Spec.Storage.Size = q },
			want: "spec.storage.size is a number that no computer has; write for example 8Gi",
		},
		"Quota": {
			args: func(c *api.EtcdCluster, q resource.Quantity) { c.Spec.Options = &api.Options{QuotaBackendSize: &q} },
			want: "spec.options.quotaBackendSize is a number that no computer has; write for example 8Gi",
		},
		"Limit": {
			args: func(c *api.EtcdCluster, q resource.Quantity) {
				c.Spec.Resources = &api.Resources{Requests: quantities("cpu", "1"), Limits: corev1.ResourceList{"cpu": q}}
			},
			want: "a quantity of resources is a number that no computer has; write for example 8Gi",
		},
	}
	for name, tc := range cases {
		for _, number := range []string{"1e999999999", "-1e999999999"} {
			t.Run(name+number, func(t *testing.T) {
				t.Parallel()
				c := load(t, "minimal")
				tc.args(c, resource.MustParse(number))
				if diff := cmp.Diff(tc.want, text(Validate(c))); diff != "" {
					t.Errorf("-want, +got\n%s", diff)
				}
			})
		}
	}
}

func atVersion(v string) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.Version = v }
}

func size(s string) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse(s) }
}

func quantities(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func compaction(mode api.CompactionMode, retention string) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) {
		c.Spec.Options = &api.Options{AutoCompaction: &api.AutoCompaction{Mode: mode, Retention: retention}}
	}
}

func flags(name, value string) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{name: value}} }
}

func metadata(labels, annotations map[string]string) func(*api.EtcdCluster) {
	return func(c *api.EtcdCluster) { c.Spec.Metadata = &api.Metadata{Labels: labels, Annotations: annotations} }
}
