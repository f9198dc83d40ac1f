package v1alpha1

import "testing"

func TestAdmitUpdate(t *testing.T) {
	t.Parallel()
	const (
		shrinks = `spec.storage.size: a volume cannot be made smaller; set spec.storage.changePolicy to Replace, for the members to be replaced one by one on new volumes, or revert it`
		another = `spec.storage.storageClassName: a volume keeps its class; set spec.storage.changePolicy to Replace, for the members to be replaced one by one on new volumes, or revert it`
	)
	admission(t, map[string]admissionCase{
		"SizeGrown": {
			reason: "a volume can grow",
			args:   args{before: `{}`, object: `spec: {storage: {size: 2Gi}}`},
		},
		"SizeSame": {
			reason: "the same size in another unit",
			args:   args{before: `{}`, object: `spec: {storage: {size: 1024Mi}}`},
		},
		"MediumWrittenOut": {
			reason: "Disk is the default",
			args:   args{before: `{}`, object: `spec: {storage: {medium: Disk}}`},
		},
		"RetentionChanged": {
			reason: "it is free to change",
			args:   args{before: `spec: {storage: {retention: {whenDeleted: Delete}}}`, object: `{}`},
		},
		"MemoryGrown": {
			reason: "a tmpfs too",
			args:   args{before: `spec: {storage: {medium: Memory}}`, object: `spec: {storage: {medium: Memory, size: 2Gi}}`},
		},
		"Hibernated": {
			reason: "0 and back",
			args:   args{before: `{}`, object: `spec: {replicas: 0}`},
		},
		"VersionChanged": {
			reason: "what cannot be carried out is said in a condition",
			args:   args{before: `{}`, object: `spec: {version: 3.7.3}`},
		},
		"SizeShrunk": {
			reason: "no volume can shrink",
			args:   args{before: `spec: {storage: {size: 2Gi}}`, object: `spec: {storage: {size: 1Gi}}`},
			want:   []string{`spec.storage.size: Invalid value: ` + shrinks},
		},
		"SizeShrunkOtherUnit": {
			reason: "1G is less than 1Gi",
			args:   args{before: `{}`, object: `spec: {storage: {size: 1G}}`},
			want:   []string{`spec.storage.size: Invalid value: ` + shrinks},
		},
		"SizeMadeGarbage": {
			reason: "whether it shrinks cannot be said",
			args:   args{before: `{}`, object: `spec: {storage: {size: x}}`},
			want: []string{
				`spec.storage.size: Invalid value: "x": spec.storage.size in body should match ` + quantityPattern,
				`spec.storage.size: Invalid value: "x": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`,
			},
		},
		"MediumToMemory": {
			reason: "the data would be lost",
			args:   args{before: `{}`, object: `spec: {storage: {medium: Memory}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.medium cannot be changed: create another EtcdCluster and copy the data`},
		},
		"MediumToDisk": {
			reason: "the data would be lost",
			args:   args{before: `spec: {storage: {medium: Memory}}`, object: `spec: {storage: {medium: Disk}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.medium cannot be changed: create another EtcdCluster and copy the data`},
		},
		"MediumRemoved": {
			reason: "leaving it out means Disk",
			args:   args{before: `spec: {storage: {medium: Memory}}`, object: `{}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.medium cannot be changed: create another EtcdCluster and copy the data`},
		},
		"ClassSet": {
			reason: "the volumes have one already",
			args:   args{before: `{}`, object: `spec: {storage: {storageClassName: fast}}`},
			want:   []string{`spec.storage.storageClassName: Invalid value: ` + another},
		},
		"ClassChanged": {
			reason: "a volume keeps its class",
			args:   args{before: `spec: {storage: {storageClassName: slow}}`, object: `spec: {storage: {storageClassName: fast}}`},
			want:   []string{`spec.storage.storageClassName: Invalid value: ` + another},
		},
		"ClassRemoved": {
			reason: "a volume keeps its class",
			args:   args{before: `spec: {storage: {storageClassName: slow}}`, object: `{}`},
			want:   []string{`spec.storage.storageClassName: Invalid value: ` + another},
		},
		"ReplaceShrunk": {
			reason: "it is asked for by name",
			args:   args{before: `spec: {storage: {size: 2Gi}}`, object: `spec: {storage: {size: 1Gi, changePolicy: Replace}}`},
		},
		"ReplaceClassSet": {
			reason: "it is asked for by name",
			args:   args{before: `{}`, object: `spec: {storage: {storageClassName: fast, changePolicy: Replace}}`},
		},
		"ReplaceClassChanged": {
			reason: "together with the size, in one apply",
			args: args{
				before: `spec: {storage: {size: 2Gi, storageClassName: slow, changePolicy: Replace}}`,
				object: `spec: {storage: {size: 1Gi, storageClassName: fast, changePolicy: Replace}}`,
			},
		},
		"ReplaceClassRemoved": {
			reason: "it moves no member",
			args:   args{before: `spec: {storage: {storageClassName: slow}}`, object: `spec: {storage: {changePolicy: Replace}}`},
		},
		"ReplaceTakenBack": {
			reason: "what was changed stays as it is",
			args:   args{before: `spec: {storage: {storageClassName: fast, changePolicy: Replace}}`, object: `spec: {storage: {storageClassName: fast, changePolicy: Expand}}`},
		},
		"ReplaceTakenBackWithClass": {
			reason: "the way back is a change as well",
			args:   args{before: `spec: {storage: {storageClassName: fast, changePolicy: Replace}}`, object: `spec: {storage: {storageClassName: slow, changePolicy: Expand}}`},
			want:   []string{`spec.storage.storageClassName: Invalid value: ` + another},
		},
		"MemoryShrunk": {
			reason: "there is no volume to replace",
			args:   args{before: `spec: {storage: {medium: Memory, size: 2Gi}}`, object: `spec: {storage: {medium: Memory, size: 1Gi}}`},
			want:   []string{`spec.storage.size: Invalid value: ` + shrinks},
		},
		"MemoryHibernated": {
			reason: "hibernation would lose the data",
			args:   args{before: `spec: {storage: {medium: Memory}}`, object: `spec: {replicas: 0, storage: {medium: Memory}}`},
			want:   []string{`spec.replicas: Invalid value: spec.replicas 0 hibernates the cluster on its volumes, but spec.storage.medium Memory has none: the data would be lost. Delete the EtcdCluster instead, or use spec.storage.medium Disk`},
		},
		"ScaledTooFar": {
			reason: "kubectl scale is checked alike",
			args:   args{before: `{}`, object: `spec: {replicas: 10}`},
			want:   []string{`spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9`},
		},
	})
}
