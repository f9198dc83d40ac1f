package v1alpha1

import (
	"strings"
	"testing"
)

// minimalBackup is the smallest good EtcdBackup.
const minimalBackup = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}}
`

// recipient is a public key of age.
const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

func TestAdmitBackup(t *testing.T) {
	t.Parallel()
	admissionOf(t, minimalBackup, map[string]admissionCase{
		"Minimal": {
			reason: "the cluster may name the store",
			args:   args{object: `{}`},
		},
		"Full": {
			reason: "all that can be said",
			args: args{object: `spec: {verify: Hash, deletionPolicy: Delete, encryption: {recipients: [` + recipient + `]}, store: {
				s3: {bucket: etcd-backups, prefix: prod/db, endpoint: 'https://minio.storage.svc:9000', region: eu-central-1, pathStyle: true,
				  serverSideEncryption: 'aws:kms', kmsKeyID: alias/etcd, caBundle: {name: ca, key: ca.crt}},
				credentials: {secretRef: {name: s3}}, serviceAccountName: backup}}`},
		},
		"NameLongest": {
			reason: "what still fits the names of its Jobs",
			args:   args{object: `metadata: {name: ` + strings.Repeat("a", 56) + `}`},
		},
		"NameTooLong": {
			reason: "its Jobs have longer names",
			args:   args{object: `metadata: {name: ` + strings.Repeat("a", 57) + `}`},
			want:   []string{`metadata: Invalid value: metadata.name must be a DNS label of at most 56 characters (lower-case letters, digits and '-'): its Jobs are named after it`},
		},
		"NameWithDots": {
			reason: "the Pods of a Job are hosts",
			args:   args{object: `metadata: {name: a.b}`},
			want:   []string{`metadata: Invalid value: metadata.name must be a DNS label of at most 56 characters (lower-case letters, digits and '-'): its Jobs are named after it`},
		},
		"NoCluster": {
			reason: "a snapshot of nothing",
			args:   args{object: `spec: {clusterRef: null}`},
			want:   []string{`spec.clusterRef: Required value`},
		},
		"UnknownMode": {
			reason: "a mode that is none",
			args:   args{object: `spec: {verify: None}`},
			want:   []string{`spec.verify: Unsupported value: "None": supported values: "Restore", "Hash"`},
		},
		"NoRecipient": {
			reason: "it could not be read",
			args:   args{object: `spec: {encryption: {recipients: []}}`},
			want:   []string{`spec.encryption.recipients: Invalid value: 0: spec.encryption.recipients in body should have at least 1 items`},
		},
		"PrivateKey": {
			reason: "a private key in the spec would be read by everybody",
			args:   args{object: `spec: {encryption: {recipients: [AGE-SECRET-KEY-1QQQQ]}}`},
			want:   []string{`spec.encryption.recipients[0]: Invalid value: "AGE-SECRET-KEY-1QQQQ": a recipient is a public key of age, age1 and 58 letters and digits, as age-keygen prints it; the private key (AGE-SECRET-KEY-1) must not be here`},
		},
		"SameDefaults": {
			reason: "what is left out may be written out",
			args:   args{before: `{}`, object: `spec: {verify: Restore, deletionPolicy: Retain}`},
		},
		"OtherPolicy": {
			reason: "what its deletion does may be thought over, before and while it is deleted",
			args:   args{before: `spec: {deletionPolicy: Delete}`, object: `spec: {deletionPolicy: Retain}`},
		},
		"OtherCluster": {
			reason: "a record is not rewritten",
			args:   args{before: `{}`, object: `spec: {clusterRef: {name: other}}`},
			want:   []string{`spec.clusterRef: Invalid value: spec.clusterRef cannot be changed: make another EtcdBackup`},
		},
		"OtherMode": {
			reason: "a record is not rewritten",
			args:   args{before: `{}`, object: `spec: {verify: Hash}`},
			want:   []string{`spec.verify: Invalid value: spec.verify cannot be changed: make another EtcdBackup`},
		},
		"OtherStore": {
			reason: "a record is not rewritten",
			args:   args{before: `{}`, object: `spec: {store: {gcs: {bucket: etcd}}}`},
			want:   []string{`spec.store: Invalid value: spec.store cannot be changed: make another EtcdBackup`},
		},
		"OtherRecipient": {
			reason: "a record is not rewritten",
			args:   args{before: `{}`, object: `spec: {encryption: {recipients: [` + recipient + `]}}`},
			want:   []string{`spec.encryption: Invalid value: spec.encryption cannot be changed: make another EtcdBackup`},
		},
	})
}

func TestAdmitStore(t *testing.T) {
	t.Parallel()
	const (
		exactlyOne = `a store is exactly one of s3, gcs, azure and volume`
		prefix     = `a prefix is names with slashes between them, for example prod/db: no leading slash, no name that begins with a dot`
	)
	admissionOf(t, minimalBackup, map[string]admissionCase{
		"S3": {
			reason: "the least that a bucket takes",
			args:   args{object: `spec: {store: {s3: {bucket: etcd-backups}}}`},
		},
		"GCS": {
			reason: "the least that a bucket takes",
			args:   args{object: `spec: {store: {gcs: {bucket: etcd-backups, prefix: a/}, serviceAccountName: backup}}`},
		},
		"Azure": {
			reason: "the least that a container takes",
			args:   args{object: `spec: {store: {azure: {account: etcdbackups, container: prod}}}`},
		},
		"Volume": {
			reason: "a claim, and a directory on it",
			args:   args{object: `spec: {store: {volume: {claimName: backups, subPath: etcd/prod}}}`},
		},
		"None": {
			reason: "nowhere is no store",
			args:   args{object: `spec: {store: {serviceAccountName: backup}}`},
			want:   []string{`spec.store: Invalid value: ` + exactlyOne},
		},
		"Two": {
			reason: "it is in one place",
			args:   args{object: `spec: {store: {gcs: {bucket: etcd-backups}, volume: {claimName: backups}}}`},
			want:   []string{`spec.store: Invalid value: ` + exactlyOne},
		},
		"VolumeWithCredentials": {
			reason: "a field that would do nothing",
			args:   args{object: `spec: {store: {volume: {claimName: backups}, credentials: {secretRef: {name: s3}}}}`},
			want:   []string{`spec.store: Invalid value: a volume needs no credentials: leave out credentials and serviceAccountName`},
		},
		"BucketURL": {
			reason: "a bucket is a name",
			args:   args{object: `spec: {store: {s3: {bucket: 's3://etcd/prod'}}}`},
			want:   []string{`spec.store.s3.bucket: Invalid value: "s3://etcd/prod": s3.bucket is the name of a bucket alone, for example etcd-backups; the path within it is s3.prefix, the server is s3.endpoint`},
		},
		"PrefixAbsolute": {
			reason: "a leading slash would be a directory without a name",
			args:   args{object: `spec: {store: {s3: {bucket: etcd, prefix: /prod}}}`},
			want:   []string{`spec.store.s3.prefix: Invalid value: "/prod": ` + prefix},
		},
		"PrefixParent": {
			reason: "the prefix of others",
			args:   args{object: `spec: {store: {gcs: {bucket: etcd, prefix: a/../b}}}`},
			want:   []string{`spec.store.gcs.prefix: Invalid value: "a/../b": ` + prefix},
		},
		"EndpointWithoutScheme": {
			reason: "with or without TLS is for a person to say",
			args:   args{object: `spec: {store: {s3: {bucket: etcd, endpoint: 'minio:9000'}}}`},
			want:   []string{`spec.store.s3.endpoint: Invalid value: "minio:9000": s3.endpoint must be http:// or https:// with a host and, if needed, a port, for example https://minio.storage.svc:9000`},
		},
		"KeyWithoutKMS": {
			reason: "the key would not be used",
			args:   args{object: `spec: {store: {s3: {bucket: etcd, kmsKeyID: alias/etcd}}}`},
			want:   []string{`spec.store.s3.kmsKeyID: Invalid value: s3.kmsKeyID is for s3.serverSideEncryption aws:kms: set that, or leave the key out`},
		},
		"AuthorityWithoutEndpoint": {
			reason: "Amazon's own is publicly known",
			args:   args{object: `spec: {store: {s3: {bucket: etcd, caBundle: {name: ca, key: ca.crt}}}}`},
			want:   []string{`spec.store.s3.caBundle: Invalid value: s3.caBundle is for a server of your own: set s3.endpoint, or leave it out`},
		},
		"AccountURL": {
			reason: "an account is a name",
			args:   args{object: `spec: {store: {azure: {account: etcd.blob, container: prod}}}`},
			want:   []string{`spec.store.azure.account: Invalid value: "etcd.blob": azure.account must be the name of a storage account: 3 to 24 lower-case letters and digits`},
		},
		"SubPathParent": {
			reason: "outside of the volume",
			args:   args{object: `spec: {store: {volume: {claimName: backups, subPath: ../etc}}}`},
			want:   []string{`spec.store.volume.subPath: Invalid value: "../etc": volume.subPath must be a path below the root of the volume, for example etcd/prod: no leading slash, no name that begins with a dot`},
		},
	})
}

func TestAdmitClusterBackup(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"Store": {
			reason: "where its snapshots go",
			args:   args{object: `spec: {backup: {store: {s3: {bucket: etcd-backups}}}}`},
		},
		"OtherStore": {
			reason: "later ones may go elsewhere",
			args:   args{before: `spec: {backup: {store: {s3: {bucket: a-b}}}}`, object: `spec: {backup: {store: {volume: {claimName: backups}}}}`},
		},
		"BeforeChange": {
			reason: "what is the default may be written out",
			args:   args{object: `spec: {backup: {beforeChange: Require, store: {s3: {bucket: etcd-backups}}}}`},
		},
		"BeforeChangeDisabled": {
			reason: "it may be thought over while a change waits for its snapshot",
			args:   args{before: `spec: {backup: {store: {s3: {bucket: etcd-backups}}}}`, object: `spec: {backup: {beforeChange: Disabled, store: {s3: {bucket: etcd-backups}}}}`},
		},
		"Encryption": {
			reason: "of all its snapshots, and what reads them",
			args:   args{object: `spec: {backup: {store: {s3: {bucket: etcd-backups}}, encryption: {recipients: [` + recipient + `]}, identity: {secretRef: {name: age}}}}`},
		},
		"EncryptionNoStore": {
			reason: "each EtcdBackup may name its own store",
			args:   args{object: `spec: {backup: {encryption: {recipients: [` + recipient + `]}}}`},
		},
		"OtherEncryption": {
			reason: "later ones may be encrypted to others, or not at all",
			args:   args{before: `spec: {backup: {encryption: {recipients: [` + recipient + `]}}}`, object: `spec: {backup: {}}`},
		},
		"EncryptionPrivateKey": {
			reason: "the same rules as on an EtcdBackup",
			args:   args{object: `spec: {backup: {encryption: {recipients: [AGE-SECRET-KEY-1QQQQ]}}}`},
			want:   []string{`spec.backup.encryption.recipients[0]: Invalid value: "AGE-SECRET-KEY-1QQQQ": a recipient is a public key of age, age1 and 58 letters and digits, as age-keygen prints it; the private key (AGE-SECRET-KEY-1) must not be here`},
		},
		"EncryptionToNone": {
			reason: "encryption that is none",
			args:   args{object: `spec: {backup: {encryption: {}}}`},
			want:   []string{`spec.backup.encryption.recipients: Required value`},
		},
		"IdentityNoSecret": {
			reason: "it is in a Secret, and nowhere else",
			args:   args{object: `spec: {backup: {identity: {}}}`},
			want:   []string{`spec.backup.identity.secretRef: Required value`},
		},
		"BeforeChangeNoStore": {
			reason: "a snapshot that goes nowhere",
			args:   args{object: `spec: {backup: {beforeChange: Require}}`},
			want:   []string{`spec.backup.beforeChange: Invalid value: spec.backup.beforeChange needs spec.backup.store, which is where the snapshot before a change of the version goes: set spec.backup.store, or leave spec.backup.beforeChange out`},
		},
		"BeforeChangeUnknown": {
			reason: "a word of another tool",
			args:   args{object: `spec: {backup: {beforeChange: Never, store: {s3: {bucket: etcd-backups}}}}`},
			want:   []string{`spec.backup.beforeChange: Unsupported value: "Never": supported values: "Require", "Disabled"`},
		},
		"NoStore": {
			reason: "the same rules as on an EtcdBackup",
			args:   args{object: `spec: {backup: {store: {}}}`},
			want:   []string{`spec.backup.store: Invalid value: a store is exactly one of s3, gcs, azure and volume`},
		},
	})
}
