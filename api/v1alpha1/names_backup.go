package v1alpha1

import (
	"strconv"
	"strings"
	"time"
)

// JobName is the Job of an attempt: <name>, <name>-2 and so on.
func (b *EtcdBackup) JobName(attempt int32) string { return b.Name + suffix(attempt) }

// DeletionJobName is the Job that deletes what is stored.
func (b *EtcdBackup) DeletionJobName() string { return b.Name + "-delete" }

// uidLength is how much of a UID the name of a snapshot has, in characters: 32 random bits.
const uidLength = 8

// SnapshotName is what an attempt calls its snapshot in the store. A part of the UID tells it from
// that of every other EtcdBackup, also in another Kubernetes cluster with the same manifests, or in
// a namespace whose name reads the same with a '-' after it: what deletes an EtcdBackup's snapshots
// goes by these names. The time is that of its creation, for people. Every attempt has a name of
// its own, because nothing in a store is overwritten and an attempt that was interrupted may have
// left something.
func (b *EtcdBackup) SnapshotName(attempt int32) string {
	uid := string(b.UID[:min(len(b.UID), uidLength)])
	return b.Namespace + "-" + b.Name + "-" + b.CreationTimestamp.UTC().Format("20060102t150405z") + "-" + uid + suffix(attempt)
}

func suffix(attempt int32) string {
	if attempt <= 1 {
		return ""
	}
	return "-" + strconv.Itoa(int(attempt))
}

// Verification is spec.verify with its default.
func (b *EtcdBackup) Verification() VerifyMode {
	if b.Spec.Verify == "" {
		return VerifyRestore
	}
	return b.Spec.Verify
}

// StoreFor is the store of a backup that is begun now: its own, or that of its cluster; nil where
// there is none.
func (b *EtcdBackup) StoreFor(c *EtcdCluster) *BackupStore {
	switch {
	case b.Spec.Store != nil:
		return b.Spec.Store
	case c != nil && c.Spec.Backup != nil:
		return c.Spec.Backup.Store
	default:
		return nil
	}
}

// EncryptionFor is the encryption of a snapshot that is begun now: that of the EtcdBackup, else
// that of its cluster, else that of an earlier attempt; nil where there is none. The store makes no
// difference: an EtcdBackup with a store of its own need not repeat the encryption of its cluster.
func (b *EtcdBackup) EncryptionFor(c *EtcdCluster) *BackupEncryption {
	switch {
	case b.Spec.Encryption != nil:
		return b.Spec.Encryption
	case c != nil && c.Spec.Backup != nil && c.Spec.Backup.Encryption != nil:
		return c.Spec.Backup.Encryption
	default:
		return b.Status.Encryption
	}
}

// Encryption is the encryption of the snapshot that is being taken, or that is stored; nil where it
// is plain.
func (b *EtcdBackup) Encryption() *BackupEncryption {
	if b.Spec.Encryption != nil {
		return b.Spec.Encryption
	}
	return b.Status.Encryption
}

// BackupName is what the EtcdBackup of that time is called: two looks at the same time lead to the
// same name.
func (s *EtcdBackupSchedule) BackupName(at time.Time) string {
	return s.Name + "-" + strconv.FormatInt(at.Unix()/60, 10)
}

// maxBackupNameLength bounds the name of an EtcdBackup, as its schema does.
const maxBackupNameLength = 56

// BackupBeforeChangeName is the EtcdBackup that is taken before this generation of the spec changes
// the version: two looks at the same spec lead to the same name. A part of the UID tells it from
// that of an EtcdCluster which had the name before. Of a long name of the cluster the end is left
// out.
func (c *EtcdCluster) BackupBeforeChangeName() string {
	version := strings.ReplaceAll(strings.TrimPrefix(c.Spec.Version, "v"), ".", "-")
	end := "-before-" + version + "-g" + strconv.FormatInt(c.Generation, 10) + "-" + string(c.UID[:min(len(c.UID), uidLength)])
	return strings.TrimRight(c.Name[:min(len(c.Name), max(0, maxBackupNameLength-len(end)))], "-") + end
}

// BacksUpBeforeChange reports whether a snapshot is to be taken and verified before the version
// changes.
func (c *EtcdCluster) BacksUpBeforeChange() bool {
	b := c.Spec.Backup
	return b != nil && b.Store != nil && b.BeforeChange != BeforeChangeDisabled
}
