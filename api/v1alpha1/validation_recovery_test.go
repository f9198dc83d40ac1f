package v1alpha1

import "testing"

func TestAdmitRecovery(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"Shortest": {
			reason: "for tests, and for those who cannot wait",
			args:   args{object: `spec: {recovery: {replaceAfter: 10s}}`},
		},
		"Default": {
			reason: "as long as Kubernetes waits for a node",
			args:   args{object: `spec: {recovery: {replaceAfter: 5m}}`},
		},
		"Seconds": {
			reason: "more of a unit than there are in the next",
			args:   args{object: `spec: {recovery: {replaceAfter: 3600s}}`},
		},
		"Longest": {
			reason: "a day",
			args:   args{object: `spec: {recovery: {replaceAfter: 24h}}`},
		},
		"LongestInMinutes": {
			reason: "the same day",
			args:   args{object: `spec: {recovery: {replaceAfter: 1440m}}`},
		},
		"Nothing": {
			reason: "the default",
			args:   args{object: `spec: {recovery: {}}`},
		},
		"TooShort": {
			reason: "a member that restarts would be given up",
			args:   args{object: `spec: {recovery: {replaceAfter: 9s}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "9s": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"TooLong": {
			reason: "a patience of days is a mistake",
			args:   args{object: `spec: {recovery: {replaceAfter: 25h}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "25h": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"TooLongBySeconds": {
			reason: "nor for a second more",
			args:   args{object: `spec: {recovery: {replaceAfter: 86401s}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "86401s": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Zero": {
			reason: "a member that is down for a moment would be given up",
			args:   args{object: `spec: {recovery: {replaceAfter: 0s}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "0s": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"NoUnit": {
			reason: "a unit is needed",
			args:   args{object: `spec: {recovery: {replaceAfter: '5'}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "5": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"UnknownUnit": {
			reason: "a unit that is none",
			args:   args{object: `spec: {recovery: {replaceAfter: 5x}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "5x": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Days": {
			reason: "days are none that Go knows",
			args:   args{object: `spec: {recovery: {replaceAfter: 1d}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "1d": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Milliseconds": {
			reason: "they are not needed here",
			args:   args{object: `spec: {recovery: {replaceAfter: 10000ms}}`},
		},
		"Fraction": {
			reason: "whole numbers only",
			args:   args{object: `spec: {recovery: {replaceAfter: 1.5m}}`},
		},
		"Mixed": {
			reason: "one unit only",
			args:   args{object: `spec: {recovery: {replaceAfter: 1h30m}}`},
		},
		"Negative": {
			reason: "there is no such time",
			args:   args{object: `spec: {recovery: {replaceAfter: -5m}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "-5m": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Garbage": {
			reason: "a word is no time",
			args:   args{object: `spec: {recovery: {replaceAfter: never}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "never": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Empty": {
			reason: "nothing is no time",
			args:   args{object: `spec: {recovery: {replaceAfter: ''}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Overflow": {
			reason: "more than fits a duration",
			args:   args{object: `spec: {recovery: {replaceAfter: 99999999999h}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "99999999999h": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`},
		},
		"Number": {
			reason: "YAML reads 5 without quotes as a number",
			args:   args{object: `spec: {recovery: {replaceAfter: 5}}`},
			want:   []string{`spec.recovery.replaceAfter: Invalid value: "integer": spec.recovery.replaceAfter in body must be of type string: "integer"`},
		},
		"EmptyShortest": {
			reason: "a mount that is late has some time all the same",
			args:   args{object: `spec: {recovery: {replaceEmptyAfter: 10s}}`},
		},
		"EmptyLongest": {
			reason: "as with replaceAfter",
			args:   args{object: `spec: {recovery: {replaceAfter: 5m, replaceEmptyAfter: 24h}}`},
		},
		"EmptyTooShort": {
			reason: "a member that restarts would be given up",
			args:   args{object: `spec: {recovery: {replaceEmptyAfter: 9s}}`},
			want:   []string{`spec.recovery.replaceEmptyAfter: Invalid value: "9s": spec.recovery.replaceEmptyAfter must be a duration from 10s to 24h, for example 30s or 1m30s`},
		},
		"EmptyTooLong": {
			reason: "a patience of days is a mistake",
			args:   args{object: `spec: {recovery: {replaceEmptyAfter: 25h}}`},
			want:   []string{`spec.recovery.replaceEmptyAfter: Invalid value: "25h": spec.recovery.replaceEmptyAfter must be a duration from 10s to 24h, for example 30s or 1m30s`},
		},
		"LossFromSurvivor": {
			reason: "a member that is left needs no store",
			args:   args{object: `spec: {recovery: {quorumLoss: FromSurvivor, quorumLossAfter: 10s}}`},
		},
		"LossFromBackup": {
			reason: "the newest snapshot in the store",
			args:   args{object: `spec: {recovery: {quorumLoss: FromBackup, quorumLossAfter: 24h}, backup: {store: {s3: {bucket: etcd-backups}}}}`},
		},
		"LossFromNoBackup": {
			reason: "there is no store",
			args:   args{object: `spec: {recovery: {quorumLoss: FromBackup}}`},
			want:   []string{`spec.recovery.quorumLoss: Invalid value: spec.recovery.quorumLoss FromBackup needs spec.backup.store, which is where the snapshot is: set it, or write FromSurvivor or Manual`},
		},
		"LossFromEncryptedBackup": {
			reason: "what reads it is there",
			args:   args{object: `spec: {recovery: {quorumLoss: FromBackup}, backup: {store: {s3: {bucket: etcd-backups}}, encryption: {recipients: [` + recipient + `]}, identity: {secretRef: {name: age}}}}`},
		},
		"LossFromUnreadableBackup": {
			reason: "it would fail when all depends on it",
			args:   args{object: `spec: {recovery: {quorumLoss: FromBackup}, backup: {store: {s3: {bucket: etcd-backups}}, encryption: {recipients: [` + recipient + `]}}}`},
			want:   []string{`spec.recovery.quorumLoss: Invalid value: spec.recovery.quorumLoss FromBackup must be able to read what spec.backup.encryption has encrypted: set spec.backup.identity to the Secret with an age identity of one of its recipients, or write FromSurvivor or Manual`},
		},
		"LossFromSurvivorUnreadable": {
			reason: "a survivor is not encrypted",
			args:   args{object: `spec: {recovery: {quorumLoss: FromSurvivor}, backup: {store: {s3: {bucket: etcd-backups}}, encryption: {recipients: [` + recipient + `]}}}`},
		},
		"LossInMemory": {
			reason: "no volume is left",
			args:   args{object: `spec: {recovery: {quorumLoss: FromSurvivor}, storage: {medium: Memory}}`},
			want:   []string{`spec.recovery.quorumLoss: Invalid value: spec.recovery.quorumLoss keeps the volumes that are left, and with spec.storage.medium Memory there are none: leave it out`},
		},
		"LossManualInMemory": {
			reason: "the default, written out",
			args:   args{object: `spec: {recovery: {quorumLoss: Manual}, storage: {medium: Memory}}`},
		},
		"LossUnknown": {
			reason: "no policy",
			args:   args{object: `spec: {recovery: {quorumLoss: Always}}`},
			want:   []string{`spec.recovery.quorumLoss: Unsupported value: "Always": supported values: "Manual", "FromSurvivor", "FromBackup"`},
		},
		"LossTooShort": {
			reason: "the volumes may be brought back",
			args:   args{object: `spec: {recovery: {quorumLossAfter: 9s}}`},
			want:   []string{`spec.recovery.quorumLossAfter: Invalid value: "9s": spec.recovery.quorumLossAfter must be a duration from 10s to 24h, for example 10m or 1m30s`},
		},
		"EmptyNoUnit": {
			reason: "a unit is needed",
			args:   args{object: `spec: {recovery: {replaceEmptyAfter: '30'}}`},
			want:   []string{`spec.recovery.replaceEmptyAfter: Invalid value: "30": spec.recovery.replaceEmptyAfter must be a duration from 10s to 24h, for example 30s or 1m30s`},
		},
	})
}
