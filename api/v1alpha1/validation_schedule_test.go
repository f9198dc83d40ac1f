package v1alpha1

import (
	"strings"
	"testing"
)

// minimalSchedule is the smallest good EtcdBackupSchedule.
const minimalSchedule = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}, schedule: '0 */6 * * *'}
`

func TestAdmitSchedule(t *testing.T) {
	t.Parallel()
	const (
		fields = `spec.schedule must have the five fields of cron, minute, hour, day of the month, month, day of the week, for example 0 */6 * * *; or be @hourly, @daily, @weekly, @monthly or @yearly. The time zone is spec.timeZone`
		zone   = `spec.timeZone must be a name of the IANA database, for example Europe/Berlin or Etc/UTC`
		late   = `spec.startingDeadline must be a duration from 10s to 168h, for example 30m or 1m30s`
	)
	admissionOf(t, minimalSchedule, map[string]admissionCase{
		"Minimal": {
			reason: "everything else has a default",
			args:   args{object: `{}`},
		},
		"Full": {
			reason: "all that can be said",
			args: args{object: `spec: {schedule: '15 2-5/3 1,15 JAN-JUN MON', timeZone: America/Argentina/Buenos_Aires, suspend: true, startingDeadline: 30m,
				retention: {last: 3, daily: 7, weekly: 4, monthly: 12, maxAge: 8760h},
				template: {metadata: {labels: {tier: gold}, annotations: {note: x}},
				  spec: {verify: Hash, deletionPolicy: Retain, store: {gcs: {bucket: etcd-backups}}, encryption: {recipients: [` + recipient + `]}}}}`},
		},
		"Word": {
			reason: "the words that cron knows",
			args:   args{object: `spec: {schedule: '@daily'}`},
		},
		"Changed": {
			reason: "a schedule is no record",
			args:   args{before: `{}`, object: `spec: {clusterRef: {name: other}, schedule: '@hourly'}`},
		},
		"NameTooLong": {
			reason: "its EtcdBackups have longer names",
			args:   args{object: `metadata: {name: ` + strings.Repeat("a", 48) + `}`},
			want:   []string{`metadata: Invalid value: metadata.name must be a DNS label of at most 47 characters (lower-case letters, digits and '-'): its EtcdBackups are called <name>-<minutes since 1970>`},
		},
		"Seconds": {
			reason: "six fields mean something else to every cron",
			args:   args{object: `spec: {schedule: '0 0 */6 * * *'}`},
			want:   []string{`spec.schedule: Invalid value: "0 0 */6 * * *": ` + fields},
		},
		"Every": {
			reason: "when that is would depend on when the operator was started",
			args:   args{object: `spec: {schedule: '@every 6h'}`},
			want:   []string{`spec.schedule: Invalid value: "@every 6h": ` + fields},
		},
		"ZoneInSchedule": {
			reason: "the zone has a field of its own",
			args:   args{object: `spec: {schedule: 'TZ=UTC 0 * * * *'}`},
			want:   []string{`spec.schedule: Invalid value: "TZ=UTC 0 * * * *": ` + fields},
		},
		"ZoneLocal": {
			reason: "local to whom",
			args:   args{object: `spec: {timeZone: Local}`},
			want:   []string{`spec.timeZone: Invalid value: "Local": ` + zone},
		},
		"ZonePath": {
			reason: "a zone is no file",
			args:   args{object: `spec: {timeZone: ../UTC}`},
			want:   []string{`spec.timeZone: Invalid value: "../UTC": ` + zone},
		},
		"DeadlineTooShort": {
			reason: "the operator itself takes a moment",
			args:   args{object: `spec: {startingDeadline: 1s}`},
			want:   []string{`spec.startingDeadline: Invalid value: "1s": ` + late},
		},
		"RetentionEmpty": {
			reason: "it says nothing",
			args:   args{object: `spec: {retention: {}}`},
			want:   []string{`spec.retention: Invalid value: 0: spec.retention in body should have at least 1 properties`},
		},
		"RetentionZero": {
			reason: "a schedule that keeps none is of no use",
			args:   args{object: `spec: {retention: {last: 0}}`},
			want:   []string{`spec.retention.last: Invalid value: 0: spec.retention.last in body should be greater than or equal to 1`},
		},
		"AgeInDays": {
			reason: "a day has 24 hours, or 23, or 25",
			args:   args{object: `spec: {retention: {maxAge: 30d}}`},
			want:   []string{`spec.retention.maxAge: Invalid value: "30d": spec.retention.maxAge must be a duration of at least 1h, for example 720h for 30 days`},
		},
	})
}
