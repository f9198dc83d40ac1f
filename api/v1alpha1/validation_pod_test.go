package v1alpha1

import (
	"strings"
	"testing"
)

const tagForm = `spec.image.tag is made of letters, digits, '-', '_' and '.' around one {version}, without a digit beside it and without another version, for example v{version} or {version}-hardened`

func TestAdmitPod(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"RepositoryPlain": {
			reason: "an image of Docker Hub",
			args:   args{object: `spec: {image: {repository: etcd}}`},
		},
		"RepositoryWithPort": {
			reason: "a registry of one's own",
			args:   args{object: `spec: {image: {repository: 'registry.example.com:5000/etcd-development/etcd'}}`},
		},
		"RepositoryLocal": {
			reason: "a registry beside the cluster",
			args:   args{object: `spec: {image: {repository: 'localhost:5001/etcd'}}`},
		},
		"RepositoryIPv6": {
			reason: "a registry without a name",
			args:   args{object: `spec: {image: {repository: '[fd00::1]:5000/etcd'}}`},
		},
		"RepositorySeparators": {
			reason: "all that a path may hold",
			args:   args{object: `spec: {image: {repository: my-registry.example.com/a__b/c--d/e.f_g}}`},
		},
		"ImageFull": {
			reason: "all of an image",
			args:   args{object: `spec: {image: {tag: 'etcd_{version}-r2', digests: [{version: 3.6.16, digest: 'sha256:` + strings.Repeat("0", 64) + `'}, {version: 3.7.0, digest: 'sha256:` + strings.Repeat("1", 64) + `'}], pullPolicy: Never, pullSecrets: [{name: a}, {name: b}]}}`},
		},
		"ResourcesFull": {
			reason: "all of the resources",
			args:   args{object: `spec: {resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}, limits: {cpu: 1000m, memory: 1024Mi}}}`},
		},
		"LabelsFull": {
			reason: "prefix, upper case and empty value",
			args:   args{object: `spec: {additionalMetadata: {labels: {example.com/Team: 'A_b.c-1', note: ''}}}`},
		},
		"AnnotationsFull": {
			reason: "values are free, and keys may have upper case",
			args:   args{object: `spec: {additionalMetadata: {annotations: {example.com/Size: 'groß'}}}`},
		},
		"SchedulingFull": {
			reason: "all of the scheduling",
			args:   args{object: `spec: {scheduling: {priorityClassName: high, nodeSelector: {kubernetes.io/os: linux}, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {etcd.quorate.dev/cluster: a}}}]}}`},
		},
		"AnnotationsMuch": {
			reason: "as much as is taken",
			args:   args{object: "spec: {additionalMetadata: {annotations: {a: " + strings.Repeat("a", 4095) + ", b: " + strings.Repeat("a", 4095) + ", c: " + strings.Repeat("a", 4095) + ", d: " + strings.Repeat("a", 4095) + "}}}"},
		},
		"AnnotationsTooMuch": {
			reason: "every object of the cluster carries them, and the operator keeps each of these in memory",
			args:   args{object: "spec: {additionalMetadata: {annotations: {a: " + strings.Repeat("a", 4095) + ", b: " + strings.Repeat("a", 4095) + ", c: " + strings.Repeat("a", 4095) + ", dd: " + strings.Repeat("a", 4095) + "}}}"},
			want:   []string{`spec.additionalMetadata.annotations: Invalid value: all keys and values together have at most 16384 characters: leave some out`},
		},
		"PodFull": {
			reason: "all of the Pods",
			args:   args{object: `spec: {pod: {metadata: {labels: {example.com/team: a}, annotations: {example.com/note: 'groß'}}, serviceAccountName: etcd.members, securityContext: {runAsUser: 1, runAsGroup: 0, fsGroup: 2147483647, supplementalGroups: [0, 5000]}}}`},
		},
		"PodOfPlatform": {
			reason: "users are left to OpenShift",
			args:   args{object: `spec: {pod: {securityContext: {}}}`},
		},
		"PodDefaults": {
			reason: "the default may be written out",
			args:   args{object: `spec: {pod: {serviceAccountName: default, securityContext: {runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}}}`},
		},
		"PodAsRoot": {
			reason: "Pod Security refuses it at its level restricted",
			args:   args{object: `spec: {pod: {securityContext: {runAsUser: 0}}}`},
			want:   []string{`spec.pod.securityContext.runAsUser: Invalid value: 0: spec.pod.securityContext.runAsUser in body should be greater than or equal to 1`},
		},
		"PodGroupNegative": {
			reason: "Linux has no such group",
			args:   args{object: `spec: {pod: {securityContext: {supplementalGroups: [-1]}}}`},
			want:   []string{`spec.pod.securityContext.supplementalGroups[0]: Invalid value: -1: spec.pod.securityContext.supplementalGroups[0] in body should be greater than or equal to 0`},
		},
		"PodGroupOfDefault": {
			reason: "the kubelet would not give its files back to the default user",
			args:   args{object: `spec: {pod: {securityContext: {runAsUser: 1000, fsGroup: 65532}}}`},
			want:   []string{`spec.pod.securityContext.fsGroup: Invalid value: spec.pod.securityContext.fsGroup 65532 goes with runAsUser 65532 alone, because volumes of that group are not given to another user: write another number, for example that of runAsUser`},
		},
		"PodServiceAccountMalformed": {
			reason: "no object has such a name",
			args:   args{object: `spec: {pod: {serviceAccountName: Etcd}}`},
			want:   []string{`spec.pod.serviceAccountName: Invalid value: "Etcd": spec.pod.serviceAccountName must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		},
		"PodLabelOfQuorate": {
			reason: "selectors rely on them",
			args:   args{object: `spec: {pod: {metadata: {labels: {etcd.quorate.dev/cluster: b}}}}`},
			want:   []string{`spec.pod.metadata.labels: Invalid value: keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix`},
		},
		"RepositoryWithTag": {
			reason: "the tag is made of the version",
			args:   args{object: `spec: {image: {repository: 'registry.example.com/etcd:v3.6.16'}}`},
			want:   []string{`spec.image.repository: Invalid value: "registry.example.com/etcd:v3.6.16": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"RepositoryWithTagOnly": {
			reason: "a number after the colon is a tag too where there is no path",
			args:   args{object: `spec: {image: {repository: 'etcd:3'}}`},
			want:   []string{`spec.image.repository: Invalid value: "etcd:3": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"RepositoryWithDigest": {
			reason: "the digest has a field of its own",
			args:   args{object: `spec: {image: {repository: 'registry.example.com/etcd@sha256:` + strings.Repeat("0", 64) + `'}}`},
			want:   []string{`spec.image.repository: Invalid value: "registry.example.com/etcd@sha256:` + strings.Repeat("0", 64) + `": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"RepositoryWithScheme": {
			reason: "an image name is no URL",
			args:   args{object: `spec: {image: {repository: 'https://registry.example.com/etcd'}}`},
			want:   []string{`spec.image.repository: Invalid value: "https://registry.example.com/etcd": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"RepositoryUpperCase": {
			reason: "paths are lower-case",
			args:   args{object: `spec: {image: {repository: registry.example.com/Etcd}}`},
			want:   []string{`spec.image.repository: Invalid value: "registry.example.com/Etcd": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"RepositoryEndsWithSlash": {
			reason: "nothing follows the slash",
			args:   args{object: `spec: {image: {repository: registry.example.com/}}`},
			want:   []string{`spec.image.repository: Invalid value: "registry.example.com/": spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version`},
		},
		"DigestWithoutAlgorithm": {
			reason: "the algorithm is part of it",
			args:   args{object: `spec: {image: {digests: [{version: 3.6.16, digest: '` + strings.Repeat("0", 64) + `'}]}}`},
			want:   []string{`spec.image.digests[0].digest: Invalid value: "` + strings.Repeat("0", 64) + `": spec.image.digests: digest must be sha256: and 64 lower-case hexadecimal digits`},
		},
		"DigestShort": {
			reason: "64 digits, not fewer",
			args:   args{object: `spec: {image: {digests: [{version: 3.6.16, digest: 'sha256:0'}]}}`},
			want:   []string{`spec.image.digests[0].digest: Invalid value: "sha256:0": spec.image.digests: digest must be sha256: and 64 lower-case hexadecimal digits`},
		},
		"DigestLong": {
			reason: "64 digits, not more",
			args:   args{object: `spec: {image: {digests: [{version: 3.6.16, digest: 'sha256:` + strings.Repeat("0", 65) + `'}]}}`},
			want:   []string{`spec.image.digests[0].digest: Too long: may not be more than 71 bytes`},
		},
		"DigestOfVersionV": {
			reason: "one version has one name",
			args:   args{object: `spec: {image: {digests: [{version: v3.6.16, digest: 'sha256:` + strings.Repeat("0", 64) + `'}]}}`},
			want:   []string{`spec.image.digests[0].version: Invalid value: "v3.6.16": spec.image.digests: version must be MAJOR.MINOR.PATCH of etcd 3.5, 3.6 or 3.7, without a leading v, for example 3.6.16`},
		},
		"DigestTwice": {
			reason: "each version has one",
			args:   args{object: `spec: {image: {digests: [{version: 3.6.16, digest: 'sha256:` + strings.Repeat("0", 64) + `'}, {version: 3.6.16, digest: 'sha256:` + strings.Repeat("1", 64) + `'}]}}`},
			want:   []string{`spec.image.digests[1]: Duplicate value: {"version":"3.6.16"}`},
		},
		"TagPlain": {
			reason: "the version alone",
			args:   args{object: `spec: {image: {tag: '{version}'}}`},
		},
		"TagWithoutVersion": {
			reason: "every version would be one image",
			args:   args{object: `spec: {image: {tag: v3.6.16}}`},
			want:   []string{`spec.image.tag: Invalid value: "v3.6.16": spec.image.tag must contain {version}, which stands for the etcd version of the member: while the version changes, members run images of several versions. Write for example v{version} or {version}-hardened`},
		},
		"TagAfterDigit": {
			reason: "it would be read as another version",
			args:   args{object: `spec: {image: {tag: '1.{version}'}}`},
			want:   []string{`spec.image.tag: Invalid value: "1.{version}": ` + tagForm},
		},
		"TagMalformed": {
			reason: "no registry has such a tag",
			args:   args{object: `spec: {image: {tag: 'v{version}/a'}}`},
			want:   []string{`spec.image.tag: Invalid value: "v{version}/a": ` + tagForm},
		},
		"TagTwoVersions": {
			reason: "which one is meant could not be told",
			args:   args{object: `spec: {image: {tag: 'go1.26.3-{version}'}}`},
			want:   []string{`spec.image.tag: Invalid value: "go1.26.3-{version}": ` + tagForm},
		},
		"PullPolicyUnknown": {
			reason: "there are three",
			args:   args{object: `spec: {image: {pullPolicy: Sometimes}}`},
			want:   []string{`spec.image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`},
		},
		"PullSecretTwice": {
			reason: "a list by name has each name once",
			args:   args{object: `spec: {image: {pullSecrets: [{name: a}, {name: a}]}}`},
			want:   []string{`spec.image.pullSecrets[1]: Duplicate value: {"name":"a"}`},
		},
		"RequestUnknown": {
			reason: "a member needs no such thing",
			args:   args{object: `spec: {resources: {requests: {nvidia.com/gpu: 1}}}`},
			want:   []string{`spec.resources.requests: Invalid value: spec.resources.requests takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi`},
		},
		"LimitUnknown": {
			reason: "a word that is not one",
			args:   args{object: `spec: {resources: {limits: {mem: 1Gi}}}`},
			want:   []string{`spec.resources.limits: Invalid value: spec.resources.limits takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi`},
		},
		"LimitMilliBytes": {
			reason: "half a byte of memory was meant to be half a GiB",
			args:   args{object: `spec: {resources: {limits: {cpu: 500m, memory: 512m}}}`},
			want:   []string{`spec.resources.limits: Invalid value: memory and ephemeral-storage of spec.resources.limits are in bytes, and m is a thousandth of one: write Mi, for example memory: 512Mi`},
		},
		"RequestMilliBytes": {
			reason: "nor is so little local storage",
			args:   args{object: `spec: {resources: {requests: {ephemeral-storage: 100m}}}`},
			want:   []string{`spec.resources.requests: Invalid value: memory and ephemeral-storage of spec.resources.requests are in bytes, and m is a thousandth of one: write Mi, for example memory: 512Mi`},
		},
		"RequestOverLimit": {
			reason: "Kubernetes refuses such a Pod",
			args:   args{object: `spec: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}`},
			want:   []string{`spec.resources: Invalid value: spec.resources.requests must not be more than spec.resources.limits: raise the limit or lower the request`},
		},
		"RequestGarbage": {
			reason: "a unit that is none",
			args:   args{object: `spec: {resources: {requests: {memory: 1GB}, limits: {memory: 1Gi}}}`},
			want: []string{
				`spec.resources.requests.memory: Invalid value: "1GB": spec.resources.requests.memory in body should match ` + quantityPattern,
				`spec.resources.requests: Invalid value: spec.resources.requests takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi`,
			},
		},
		"LabelKeyNotASCII": {
			reason: "Kubernetes takes ASCII only",
			args:   args{object: `spec: {additionalMetadata: {labels: {'größe': m}}}`},
			want:   []string{`spec.additionalMetadata.labels: Invalid value: a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit`},
		},
		"LabelValueNotASCII": {
			reason: "Kubernetes takes ASCII only",
			args:   args{object: `spec: {additionalMetadata: {labels: {size: 'groß'}}}`},
			want:   []string{`spec.additionalMetadata.labels: Invalid value: a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit`},
		},
		"LabelValueLong": {
			reason: "63 is what Kubernetes takes",
			args:   args{object: `spec: {additionalMetadata: {labels: {size: ` + strings.Repeat("a", 64) + `}}}`},
			want:   []string{`spec.additionalMetadata.labels.size: Too long: may not be more than 63 bytes`},
		},
		"LabelOfQuorate": {
			reason: "selectors rely on them",
			args:   args{object: `spec: {additionalMetadata: {labels: {etcd.quorate.dev/member: a-0}}}`},
			want:   []string{`spec.additionalMetadata.labels: Invalid value: keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix`},
		},
		"LabelOfTools": {
			reason: "Quorate writes them",
			args:   args{object: `spec: {additionalMetadata: {labels: {app.kubernetes.io/name: mine}}}`},
			want:   []string{`spec.additionalMetadata.labels: Invalid value: keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix`},
		},
		"AnnotationKeyNotASCII": {
			reason: "Kubernetes takes ASCII only",
			args:   args{object: `spec: {additionalMetadata: {annotations: {'größe': m}}}`},
			want:   []string{`spec.additionalMetadata.annotations: Invalid value: a key is an optional DNS prefix with a slash, and a name of at most 63 ASCII letters, digits, '-', '_' and '.'`},
		},
		"AnnotationOfQuorate": {
			reason: "they say whose data a volume holds",
			args:   args{object: `spec: {additionalMetadata: {annotations: {etcd.quorate.dev/member-id: '1'}}}`},
			want:   []string{`spec.additionalMetadata.annotations: Invalid value: keys under etcd.quorate.dev/ are written by Quorate; use another prefix`},
		},
		"AnnotationValueLong": {
			reason: "all of them must fit an object",
			args:   args{object: "spec: {additionalMetadata: {annotations: {a: " + strings.Repeat("a", 4097) + "}}}"},
			want:   []string{`spec.additionalMetadata.annotations: Invalid value: a value has at most 4096 characters`},
		},
		"NodeSelectorNotALabel": {
			reason: "no node has such a label",
			args:   args{object: `spec: {scheduling: {nodeSelector: {'my disk': ssd}}}`},
			want:   []string{`spec.scheduling.nodeSelector: Invalid value: a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit`},
		},
		"SpreadWithoutSelector": {
			reason: "then it counts the members",
			args:   args{object: `spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}`},
		},
	})
}
