package templates_test

// alertCases are named after the alert that they are about, which fires where want names it. Each
// has its near miss: a row that differs in what the alert asks about, and nothing else.
var alertCases = map[string]struct {
	reason string
	args   []string // series, in the notation of promqltest
	want   []string
}{
	"QuorateBackupTooOld/Missed": {
		reason: "the last one is of yesterday, 02:02, and the schedule was due at 02:00",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 612120x2352`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 612000x2327 698400x24`,
		},
		want: []string{`QuorateBackupTooOld{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupTooOld/Runs": {
		reason: "the schedule was due at 03:30, and the backup may run for an hour",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 617520x2352`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 617400x2345 703800x6`,
		},
	},
	"QuorateBackupTooOld/Taken": {
		reason: "one was taken at 02:02, and was verified within ten minutes",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 612120x2329 698520x22`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 612000x2327 698400x24`,
		},
	},
	"QuorateBackupTooOld/Often": {
		reason: "a schedule that is due every five minutes is not excused by its last time, which is always young",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 694800x2352`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="often"} 0+300x2352`,
		},
		want: []string{`QuorateBackupTooOld{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupTooOld/Weekdays": {
		reason: "a schedule of weekdays is not due on a weekend, however old the last one gets",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 518520x2352`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="weekdays"} 518400x2352`,
		},
	},
	"QuorateBackupTooOld/NotYetDue": {
		reason: "a monthly schedule that is new has no time yet, and the seven days are for clusters without one",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 7200x2352`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="monthly"} 0x2352`,
		},
	},
	"QuorateBackupTooOld/NoSchedule": {
		reason: "without a schedule, or with one that is suspended, seven days are too old; of two clusters of one name one is meant",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 7200x2352`,
			`quorate_backup_last_good_timestamp_seconds{namespace="team-b",cluster="db"} 518400x2352`,
		},
		want: []string{`QuorateBackupTooOld{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupTooOld/TwoOperators": {
		reason: "one operator takes over from the other, and both are scraped: that is one alert",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db",pod="quorate-0"} 7200x2352`,
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db",pod="quorate-1"} 7200x2352`,
		},
		want: []string{`QuorateBackupTooOld{cluster="db", namespace="team-a"}`},
	},

	"QuorateBackupTooOld/OtherClock": {
		reason: "it was taken at 02:00 by a node whose clock is twenty seconds behind the operator's",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 611980x2329 698380x22`,
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 612000x2327 698400x24`,
		},
	},
	"QuorateBackupTooOld/Hibernated": {
		reason: "nothing was written since then, and no backup can be taken; another cluster is awake",
		args: []string{
			`quorate_backup_last_good_timestamp_seconds{namespace="team-a",cluster="db"} 7200x2352`,
			`quorate_backup_last_good_timestamp_seconds{namespace="team-b",cluster="db"} 7200x2352`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Hibernated"} 1x2352`,
			`quorate_cluster_condition{namespace="team-b",cluster="db",condition="Available",status="True",reason="Serving"} 1x2352`,
		},
		want: []string{`QuorateBackupTooOld{cluster="db", namespace="team-b"}`},
	},

	"QuorateBackupMissing/Never": {
		reason: "a schedule has been due, and nothing good came of it: there is no series of a last good one",
		args:   []string{`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 691200x2352`},
		want:   []string{`QuorateBackupMissing{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupMissing/OfAnother": {
		reason: "a good one of another cluster is none of this one",
		args: []string{
			`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 691200x2352`,
			`quorate_backup_last_good_timestamp_seconds{namespace="team-b",cluster="db"} 691320x2352`,
		},
		want: []string{`QuorateBackupMissing{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupMissing/NotYetDue": {
		reason: "a schedule that is new has had no time to make one",
		args:   []string{`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 0x2352`},
	},
	"QuorateBackupMissing/Runs": {
		reason: "the first backup may run for an hour",
		args:   []string{`quorate_backup_schedule_due_timestamp_seconds{namespace="team-a",cluster="db",schedule="nightly"} 0x2345 703800x6`},
	},

	"QuorateBackupNotVerified/Hours": {
		reason: "it was stored four hours ago",
		args:   []string{`quorate_backup_last_verified{namespace="team-a",cluster="db"} 0x2352`},
		want:   []string{`QuorateBackupNotVerified{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupNotVerified/Underway": {
		reason: "each is stored a while before it is verified",
		args:   []string{`quorate_backup_last_verified{namespace="team-a",cluster="db"} 1x2342 0x9`},
	},
	"QuorateBackupNotVerified/Verified": {
		reason: "it is verified",
		args:   []string{`quorate_backup_last_verified{namespace="team-a",cluster="db"} 1x2352`},
	},

	"QuorateBackupStalled/Two": {
		reason: "a person must act for two of them",
		args:   []string{`quorate_backup_stalled{namespace="team-a",cluster="db"} 2x2352`},
		want:   []string{`QuorateBackupStalled{cluster="db", namespace="team-a"}`},
	},
	"QuorateBackupStalled/None": {
		reason: "a person has acted",
		args:   []string{`quorate_backup_stalled{namespace="team-a",cluster="db"} 2x2350 0x1`},
	},

	"QuorateBackupScheduleStalled/NeverFires": {
		reason: "the schedule itself is at fault",
		args: []string{
			`quorate_backup_schedule_stalled{namespace="team-a",cluster="db",schedule="never"} 1x2352`,
			`quorate_backup_schedule_stalled{namespace="team-a",cluster="db",schedule="nightly"} 0x2352`,
			`quorate_backup_stalled{namespace="team-a",cluster="db"} 0x2352`,
		},
		want: []string{`QuorateBackupScheduleStalled{cluster="db", namespace="team-a", schedule="never"}`},
	},
	"QuorateBackupScheduleStalled/OfItsBackup": {
		reason: "its last EtcdBackup is stalled, and one alert is enough",
		args: []string{
			`quorate_backup_schedule_stalled{namespace="team-a",cluster="db",schedule="nightly"} 1x2352`,
			`quorate_backup_stalled{namespace="team-a",cluster="db"} 1x2352`,
		},
		want: []string{`QuorateBackupStalled{cluster="db", namespace="team-a"}`},
	},

	"QuorateClusterUnavailable/QuorumLost": {
		reason: "there is no quorum; it is not ready for the same reason",
		args: []string{
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="True",reason="Serving"} 1x2346 _x5`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="QuorumLost"} 1 _x2346 1x5`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="False",reason="QuorumLost"} 1 _x2346 1x5`,
		},
		want: []string{`QuorateClusterUnavailable{cluster="db", namespace="team-a"}`},
	},
	"QuorateClusterUnavailable/AnotherReason": {
		reason: "it goes on for another reason, and the alert with it: the alarm had members restarted",
		args: []string{
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Alarm"} 1 _x2346 1x2 _x2`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="QuorumLost"} 1 _x2349 1x2`,
		},
		want: []string{`QuorateClusterUnavailable{cluster="db", namespace="team-a"}`},
	},
	"QuorateClusterUnavailable/NotFormed": {
		reason: "a new cluster has not served yet, and serves nothing that is missed",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="NotFormed"} 1x2352`},
	},
	"QuorateClusterUnavailable/Restoring": {
		reason: "a restore in place was asked for",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Restoring"} 1x2352`},
	},
	"QuorateClusterUnavailable/Hibernated": {
		reason: "no members were asked for",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Hibernated"} 1x2352`},
	},
	"QuorateClusterUnavailable/Hibernating": {
		reason: "no members were asked for, and they are being stopped",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Hibernating"} 1x2352`},
	},
	"QuorateClusterUnavailable/Unknown": {
		reason: "the operator reaches no member, and the kubelets find that they serve",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="Unknown",reason="Unreachable"} 1x2352`},
	},

	"QuorateClusterStalled/Stalled": {
		reason: "a person must act; that it is not ready needs no second alert",
		args: []string{
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Stalled",status="True",reason="PodPending"} 1x2352`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="False",reason="PodPending"} 1x2352`,
		},
		want: []string{`QuorateClusterStalled{cluster="db", namespace="team-a"}`},
	},
	"QuorateClusterStalled/Reconciling": {
		reason: "work is under way",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Reconciling",status="True",reason="Changing"} 1x2352`},
	},

	"QuorateClusterNotReady/Hours": {
		reason: "for four hours, whatever the reasons",
		args: []string{
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="False",reason="MemberDown"} 1x2340 _x11`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="False",reason="Changing"} 1 _x2340 1x11`,
		},
		want: []string{`QuorateClusterNotReady{cluster="db", namespace="team-a"}`},
	},
	"QuorateClusterNotReady/Minutes": {
		reason: "a change of version takes its time",
		args: []string{
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="True",reason="Healthy"} 1x2341 _x10`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="False",reason="Changing"} 1 _x2341 1x10`,
		},
	},
	"QuorateClusterNotReady/Ready": {
		reason: "it is ready",
		args:   []string{`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Ready",status="True",reason="Healthy"} 1x2352`},
	},

	"QuorateDatabaseNearQuota/Full": {
		reason: "448 of 512 MiB are 87 %",
		args: []string{
			`quorate_cluster_database_size_bytes{namespace="team-a",cluster="db"} 469762048x2352`,
			`quorate_cluster_database_quota_bytes{namespace="team-a",cluster="db"} 536870912x2352`,
		},
		want: []string{`QuorateDatabaseNearQuota{cluster="db", namespace="team-a"}`},
	},
	"QuorateDatabaseNearQuota/Hibernated": {
		reason: "its status has the size of before, and nothing is written",
		args: []string{
			`quorate_cluster_database_size_bytes{namespace="team-a",cluster="db"} 469762048x2352`,
			`quorate_cluster_database_quota_bytes{namespace="team-a",cluster="db"} 536870912x2352`,
			`quorate_cluster_condition{namespace="team-a",cluster="db",condition="Available",status="False",reason="Hibernated"} 1x2352`,
		},
	},
	"QuorateDatabaseNearQuota/Room": {
		reason: "416 of 512 MiB are 81 %",
		args: []string{
			`quorate_cluster_database_size_bytes{namespace="team-a",cluster="db"} 436207616x2352`,
			`quorate_cluster_database_quota_bytes{namespace="team-a",cluster="db"} 536870912x2352`,
		},
	},

	"QuorateOperatorAbsent/Gone": {
		reason: "nothing is scraped; the alert has no labels but its own",
		args:   []string{`leader_election_master_status{name="quorate",pod="quorate-0"} 1x2340 _x11`},
		want:   []string{`QuorateOperatorAbsent{}`},
	},
	"QuorateOperatorAbsent/OnlyWaits": {
		reason: "an operator that waits for the lease does not lead",
		args:   []string{`leader_election_master_status{name="quorate",pod="quorate-0"} 0x2352`},
		want:   []string{`QuorateOperatorAbsent{}`},
	},
	"QuorateOperatorAbsent/TakesOver": {
		reason: "one of two leads",
		args: []string{
			`leader_election_master_status{name="quorate",pod="quorate-0"} 1x2346 0x5`,
			`leader_election_master_status{name="quorate",pod="quorate-1"} 0x2346 1x5`,
		},
	},
}
