package v1alpha1

import "testing"

func TestAdmitBootstrap(t *testing.T) {
	t.Parallel()
	const (
		store  = `{s3: {bucket: etcd-backups}}`
		other  = `{s3: {bucket: other}}`
		plain  = `spec: {bootstrap: {restore: {store: ` + store + `}}}`
		begun  = `spec.bootstrap: Invalid value: spec.bootstrap is how a new cluster begins, and this one has begun: it can be left out once the cluster has formed, and corrected while no snapshot was chosen (status.restored). To put this cluster back to a snapshot, make an EtcdRestore`
		chosen = `status: {restored: {name: db-1, sha256: 5a}}`
		formed = `status: {clusterID: c1}`
	)
	admission(t, map[string]admissionCase{
		"Newest": {
			reason: "the newest verified snapshot of a store",
			args:   args{object: plain},
		},
		"OwnStore": {
			reason: "the store of its backups is where its snapshots are",
			args:   args{object: `spec: {backup: {store: ` + store + `}, bootstrap: {restore: {}}}`},
		},
		"Full": {
			reason: "all that can be said",
			args: args{object: `spec: {bootstrap: {restore: {store: ` + store + `, before: '2026-11-25T07:50:00Z', cluster: prod/db, clusterID: 9a1b,
				identity: {secretRef: {name: age}}, unverified: Allow, revisionBump: 0}}}`},
		},
		"NoStore": {
			reason: "it does not say where it is",
			args:   args{object: `spec: {bootstrap: {restore: {snapshot: db-1}}}`},
			want:   []string{`spec.bootstrap.restore: Invalid value: spec.bootstrap.restore needs a store: set spec.bootstrap.restore.store, or spec.backup.store`},
		},
		"Nothing": {
			reason: "a beginning that is none",
			args:   args{object: `spec: {bootstrap: {}}`},
			want:   []string{`spec.bootstrap.restore: Required value`},
		},
		"NameAndTime": {
			reason: "one of both is meant",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, snapshot: db-1, before: '2026-11-25T07:50:00Z'}}}`},
			want:   []string{`spec.bootstrap.restore.before: Invalid value: before chooses among snapshots, and snapshot is one: leave one of them out`},
		},
		"NoTime": {
			reason: "a day is no time",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, before: '2026-11-25'}}}`},
			want:   []string{`spec.bootstrap.restore.before: Invalid value: "2026-11-25": spec.bootstrap.restore.before in body must be of type date-time: "2026-11-25"`},
		},
		"ClusterWithoutNamespace": {
			reason: "manifests have both",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, cluster: db}}}`},
			want:   []string{`spec.bootstrap.restore.cluster: Invalid value: "db": cluster is the namespace and the name of the EtcdCluster that the snapshot was taken of, for example prod/db`},
		},
		"ClusterIDAsNumber": {
			reason: "etcd's own tools print it without a prefix",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, clusterID: '0x9A'}}}`},
			want:   []string{`spec.bootstrap.restore.clusterID: Invalid value: "0x9A": clusterID is etcd's own ID in lower-case hexadecimal digits, as status.clusterID has it`},
		},
		"Unverified": {
			reason: "a policy that is none",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, unverified: Maybe}}}`},
			want:   []string{`spec.bootstrap.restore.unverified: Unsupported value: "Maybe": supported values: "Refuse", "Allow"`},
		},
		"Backwards": {
			reason: "revisions only go on",
			args:   args{object: `spec: {bootstrap: {restore: {store: ` + store + `, revisionBump: -1}}}`},
			want:   []string{`spec.bootstrap.restore.revisionBump: Invalid value: -1: spec.bootstrap.restore.revisionBump in body should be greater than or equal to 0`},
		},
		"Corrected": {
			reason: "nothing was made yet",
			args:   args{before: plain, object: `spec: {bootstrap: {restore: {store: ` + other + `}}}`},
		},
		"CorrectedLate": {
			reason: "members are being restored from the snapshot that was chosen",
			args:   args{before: plain + "\n" + chosen, object: `spec: {bootstrap: {restore: {store: ` + other + `}}}` + "\n" + chosen},
			want:   []string{begun},
		},
		"Same": {
			reason: "applied again",
			args:   args{before: plain + "\n" + chosen + "\n", object: plain + "\n" + chosen},
		},
		"Added": {
			reason: "a cluster that has begun empty is not restored over",
			args:   args{before: `{}`, object: plain},
			want:   []string{begun},
		},
		"AddedToFormed": {
			reason: "nor is one that has data",
			args:   args{before: formed, object: plain + "\n" + formed},
			want:   []string{begun},
		},
		"LeftOut": {
			reason: "it is done, and Git need not have it for ever",
			args:   args{before: plain + "\n" + formed, object: formed},
		},
		"LeftOutEarly": {
			reason: "it would begin empty",
			args:   args{before: plain, object: `{}`},
			want:   []string{begun},
		},
		"LeftOutHalfway": {
			reason: "half of the members are restored",
			args:   args{before: plain + "\n" + chosen, object: chosen},
			want:   []string{begun},
		},
	})
}
