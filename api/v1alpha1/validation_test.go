package v1alpha1

import (
	"strings"
	"testing"
)

func TestAdmitSpec(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"Minimal": {
			reason: "a version and a size are enough",
			args:   args{object: `{}`},
		},
		"ReplicasHibernated": {
			reason: "0 hibernates",
			args:   args{object: `spec: {replicas: 0}`},
		},
		"ReplicasOne": {
			reason: "one member is a cluster",
			args:   args{object: `spec: {replicas: 1}`},
		},
		"ReplicasEven": {
			reason: "even numbers are no better, but no worse",
			args:   args{object: `spec: {replicas: 4}`},
		},
		"ReplicasNine": {
			reason: "the largest",
			args:   args{object: `spec: {replicas: 9}`},
		},
		"ReplicasNull": {
			reason: "null is the default",
			args:   args{object: `spec: {replicas: null}`},
		},
		"VersionWithV": {
			reason: "as in the tag of the image",
			args:   args{object: `spec: {version: v3.6.16}`},
		},
		"VersionOldest": {
			reason: "the first patch with the readiness check",
			args:   args{object: `spec: {version: 3.5.19}`},
		},
		"VersionOldestRecent": {
			reason: "the minor as it came out",
			args:   args{object: `spec: {version: 3.6.0}`},
		},
		"VersionNewest": {
			reason: "the newest minor",
			args:   args{object: `spec: {version: 3.7.3}`},
		},
		"VersionToCome": {
			reason: "patches go on",
			args:   args{object: `spec: {version: 3.7.100}`},
		},
		"NameLongest": {
			reason: "what still fits the names made of it",
			args:   args{object: `metadata: {name: ` + strings.Repeat("a", 56) + `}`},
		},
		"NameWithDigits": {
			reason: "digits may follow",
			args:   args{object: `metadata: {name: a-1}`},
		},
		"Suspended": {
			reason: "a person works on it",
			args:   args{object: `spec: {suspend: true}`},
		},
		"ReplicasNegative": {
			reason: "there is no such size",
			args:   args{object: `spec: {replicas: -1}`},
			want: []string{
				`.spec.replicas: Invalid value: -1: should be a non-negative integer`,
				`spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`,
			},
		},
		"ReplicasTen": {
			reason: "more members only make writes slower",
			args:   args{object: `spec: {replicas: 10}`},
			want:   []string{`spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9`},
		},
		"ReplicasThousand": {
			reason: "a slip of the hand must not make a thousand Pods",
			args:   args{object: `spec: {replicas: 1000}`},
			want:   []string{`spec.replicas: Invalid value: 1000: spec.replicas in body should be less than or equal to 9`},
		},
		"ReplicasNotANumber": {
			reason: "a number is a number",
			args:   args{object: `spec: {replicas: three}`},
			want: []string{
				`.spec.replicas: Invalid value: 0: .spec.replicas accessor error: three is of the type string, expected int64`,
				`spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`,
			},
		},
		"VersionMissing": {
			reason: "there is no version that is right for everyone",
			args:   args{object: `spec: {version: null}`},
			want:   []string{`spec.version: Required value`},
		},
		"VersionLatest": {
			reason: "a tag that moves is no version",
			args:   args{object: `spec: {version: latest}`},
			want:   []string{`spec.version: Invalid value: "latest": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionGarbage": {
			reason: "words are no version",
			args:   args{object: `spec: {version: garbage}`},
			want:   []string{`spec.version: Invalid value: "garbage": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionEmpty": {
			reason: "nothing is no version",
			args:   args{object: `spec: {version: ''}`},
			want:   []string{`spec.version: Invalid value: "": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionMinor": {
			reason: "a minor is no version",
			args:   args{object: `spec: {version: '3.6'}`},
			want:   []string{`spec.version: Invalid value: "3.6": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionNumber": {
			reason: "YAML reads 3.6 without quotes as a number",
			args:   args{object: `spec: {version: 3.6}`},
			want:   []string{`spec.version: Invalid value: "number": spec.version in body must be of type string: "number"`},
		},
		"VersionLeadingZero": {
			reason: "one version has one name",
			args:   args{object: `spec: {version: 3.6.016}`},
			want:   []string{`spec.version: Invalid value: "3.6.016": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionPreRelease": {
			reason: "pre-releases are no releases",
			args:   args{object: `spec: {version: 3.7.0-rc.0}`},
			want:   []string{`spec.version: Invalid value: "3.7.0-rc.0": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionImageTag": {
			reason: "the tag is made by Quorate, and the architecture is chosen by the registry",
			args:   args{object: `spec: {version: v3.5.35-arm64}`},
			want:   []string{`spec.version: Invalid value: "v3.5.35-arm64": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionTwoVs": {
			reason: "one v is enough",
			args:   args{object: `spec: {version: vv3.6.16}`},
			want:   []string{`spec.version: Invalid value: "vv3.6.16": spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16`},
		},
		"VersionTooOld": {
			reason: "3.4 is not supported by etcd any more",
			args:   args{object: `spec: {version: 3.4.30}`},
			want:   []string{`spec.version: Invalid value: "3.4.30": spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3`},
		},
		"VersionTooNew": {
			reason: "3.9 is not known yet",
			args:   args{object: `spec: {version: 3.9.0}`},
			want:   []string{`spec.version: Invalid value: "3.9.0": spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3`},
		},
		"VersionOtherMajor": {
			reason: "etcd 4 is not known yet",
			args:   args{object: `spec: {version: 4.0.0}`},
			want:   []string{`spec.version: Invalid value: "4.0.0": spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3`},
		},
		"VersionCorrupting": {
			reason: "3.5.2 can corrupt data",
			args:   args{object: `spec: {version: 3.5.2}`},
			want:   []string{`spec.version: Invalid value: "3.5.2": spec.version: etcd 3.5 is supported from 3.5.19 on (earlier patches lack the readiness check that Quorate relies on, and 3.5.0 to 3.5.2 can corrupt data); write 3.5.35`},
		},
		"VersionBeforeReadyz": {
			reason: "3.5.18 is the last patch without what the readiness probe needs",
			args:   args{object: `spec: {version: v3.5.18}`},
			want:   []string{`spec.version: Invalid value: "v3.5.18": spec.version: etcd 3.5 is supported from 3.5.19 on (earlier patches lack the readiness check that Quorate relies on, and 3.5.0 to 3.5.2 can corrupt data); write 3.5.35`},
		},
		"VersionTooLong": {
			reason: "a version is short",
			args:   args{object: `spec: {version: '` + strings.Repeat("3", 65) + `'}`},
			want:   []string{`spec.version: Too long: may not be more than 64 bytes`},
		},
		"NameTooLong": {
			reason: "the Services and Pods get longer names",
			args:   args{object: `metadata: {name: ` + strings.Repeat("a", 57) + `}`},
			want:   []string{`metadata: Invalid value: metadata.name is too long: at most 56 characters, because the Service <name>-client and the Pods <name>-<ordinal> must fit a DNS label of 63`},
		},
		"NameStartsWithDigit": {
			reason: "a Service may not be called so",
			args:   args{object: `metadata: {name: 0a}`},
			want:   []string{`metadata: Invalid value: metadata.name must be a DNS label that starts with a letter (lower-case letters, digits and '-'): it becomes the name of a Service`},
		},
		"NameWithDots": {
			reason: "a DNS label has none",
			args:   args{object: `metadata: {name: a.b}`},
			want:   []string{`metadata: Invalid value: metadata.name must be a DNS label that starts with a letter (lower-case letters, digits and '-'): it becomes the name of a Service`},
		},
	})
}
