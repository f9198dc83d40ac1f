package v1alpha1

import "testing"

func TestAdmitStorage(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"SizeSmallest": {
			reason: "the least that works",
			args:   args{object: `spec: {storage: {size: 256Mi}}`},
		},
		"SizeBytes": {
			reason: "a number is bytes",
			args:   args{object: `spec: {storage: {size: 1073741824}}`},
		},
		"SizeFraction": {
			reason: "fractions and exponents are quantities",
			args:   args{object: `spec: {storage: {size: 1.5e9}}`},
		},
		"ClassNamed": {
			reason: "a class of one's own, and nothing left behind",
			args:   args{object: `spec: {storage: {storageClassName: fast, medium: Disk, retention: {whenDeleted: Delete}}}`},
		},
		"Memory": {
			reason: "a tmpfs",
			args:   args{object: `spec: {storage: {medium: Memory}}`},
		},
		"SizeMissing": {
			reason: "there is no size that is right for everyone",
			args:   args{object: `spec: {storage: {size: null}}`},
			want:   []string{`spec.storage.size: Required value`},
		},
		"SizeZero": {
			reason: "nothing fits",
			args:   args{object: `spec: {storage: {size: 0}}`},
			want:   []string{`spec.storage.size: Invalid value: 0: spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeExponent": {
			reason: "a number whose digits cannot be written out would keep the API server and the operator busy for ever",
			args:   args{object: `spec: {storage: {size: "1e-999999999"}}`},
			want:   []string{`spec.storage.size: Invalid value: "1e-999999999": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeLargest": {
			reason: "the most that is taken",
			args:   args{object: `spec: {storage: {size: 1Pi}}`},
		},
		"SizeTooLarge": {
			reason: "no volume is larger, and a number of bytes has 63 bits",
			args:   args{object: `spec: {storage: {size: 10E}}`},
			want:   []string{`spec.storage.size: Invalid value: "10E": spec.storage.size must be at most 1Pi, for example 8Gi`},
		},
		"SizeDigits": {
			reason: "nor one with so many digits",
			args:   args{object: `spec: {storage: {size: 999999999999999999.999999999E}}`},
			want:   []string{`spec.storage.size: Invalid value: "999999999999999999.999999999E": spec.storage.size must be at most 1Pi, for example 8Gi`},
		},
		"SizeNegative": {
			reason: "there is no such size",
			args:   args{object: `spec: {storage: {size: -8Gi}}`},
			want:   []string{`spec.storage.size: Invalid value: "-8Gi": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeTiny": {
			reason: "the write-ahead log alone needs more",
			args:   args{object: `spec: {storage: {size: 100Mi}}`},
			want:   []string{`spec.storage.size: Invalid value: "100Mi": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeNoUnit": {
			reason: "a number alone is bytes",
			args:   args{object: `spec: {storage: {size: '8'}}`},
			want:   []string{`spec.storage.size: Invalid value: "8": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeMillis": {
			reason: "m is a thousandth",
			args:   args{object: `spec: {storage: {size: 8000m}}`},
			want:   []string{`spec.storage.size: Invalid value: "8000m": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`},
		},
		"SizeGarbage": {
			reason: "a unit that is none",
			args:   args{object: `spec: {storage: {size: 8GB}}`},
			want: []string{
				`spec.storage.size: Invalid value: "8GB": spec.storage.size in body should match ` + quantityPattern,
				`spec.storage.size: Invalid value: "8GB": spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write`,
			},
		},
		"StorageMissing": {
			reason: "storage has to be asked for",
			args:   args{object: `spec: {storage: null}`},
			want:   []string{`spec.storage: Required value`},
		},
		"MediumUnknown": {
			reason: "there are two",
			args:   args{object: `spec: {storage: {medium: SSD}}`},
			want:   []string{`spec.storage.medium: Unsupported value: "SSD": supported values: "Disk", "Memory"`},
		},
		"RetentionUnknown": {
			reason: "there are two",
			args:   args{object: `spec: {storage: {retention: {whenDeleted: Keep}}}`},
			want:   []string{`spec.storage.retention.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"`},
		},
		"RetentionWhenScaled": {
			reason: "the volumes of members that were removed are kept",
			args:   args{object: `spec: {storage: {retention: {whenScaled: Retain}}}`},
		},
		"RetentionBoth": {
			reason: "the one says nothing about the other",
			args:   args{object: `spec: {storage: {retention: {whenDeleted: Retain, whenScaled: Delete}}}`},
		},
		"RetentionWhenScaledUnknown": {
			reason: "there are two",
			args:   args{object: `spec: {storage: {retention: {whenScaled: Keep}}}`},
			want:   []string{`spec.storage.retention.whenScaled: Unsupported value: "Keep": supported values: "Retain", "Delete"`},
		},
		"MemoryWithRetentionWhenScaled": {
			reason: "nothing of a tmpfs can be retained",
			args:   args{object: `spec: {storage: {medium: Memory, retention: {whenScaled: Retain}}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out`},
		},
		"MemoryHibernated": {
			reason: "hibernation would lose the data",
			args:   args{object: `spec: {replicas: 0, storage: {medium: Memory}}`},
			want:   []string{`spec.replicas: Invalid value: spec.replicas 0 hibernates the cluster on its volumes, but spec.storage.medium Memory has none: the data would be lost. Delete the EtcdCluster instead, or use spec.storage.medium Disk`},
		},
		"MemoryWithClass": {
			reason: "a tmpfs has no class",
			args:   args{object: `spec: {storage: {medium: Memory, storageClassName: fast}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out`},
		},
		"MemoryWithRetention": {
			reason: "nothing of a tmpfs can be retained",
			args:   args{object: `spec: {storage: {medium: Memory, retention: {whenDeleted: Retain}}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out`},
		},
		"MemoryWithChangePolicy": {
			reason: "there is no volume to replace",
			args:   args{object: `spec: {storage: {medium: Memory, changePolicy: Replace}}`},
			want:   []string{`spec.storage: Invalid value: spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out`},
		},
		"ChangePolicyReplace": {
			reason: "from the first",
			args:   args{object: `spec: {storage: {changePolicy: Replace}}`},
		},
		"ChangePolicyUnknown": {
			reason: "there are two",
			args:   args{object: `spec: {storage: {changePolicy: Move}}`},
			want:   []string{`spec.storage.changePolicy: Unsupported value: "Move": supported values: "Expand", "Replace"`},
		},
		"ClassEmpty": {
			reason: "an empty class would ask for a volume made by hand",
			args:   args{object: `spec: {storage: {storageClassName: ''}}`},
			want:   []string{`spec.storage.storageClassName: Invalid value: "": spec.storage.storageClassName in body should be at least 1 chars long`},
		},
	})
}
