package v1alpha1

import (
	"reflect"
	"strings"
	"testing"
)

func TestAdmitRestore(t *testing.T) {
	t.Parallel()
	const (
		store = `{s3: {bucket: etcd-backups}}`
		other = `{s3: {bucket: other}}`
		alone = `spec.source.backupRef: Invalid value: spec.source.backupRef says where the snapshot is and what it is called: leave out spec.source.store, snapshot, before, cluster and clusterID`
		left  = `spec.source.survivor: Invalid value: spec.source.survivor takes the data of a member, and no snapshot: beside it, write spec.source.revisionBump alone`
		fixed = `spec: Invalid value: only spec.suspend can be changed: create another EtcdRestore`
	)
	source := func(fields string) string { return `spec: {source: {` + fields + `}}` }
	admissionOf(t, minimalRestore, map[string]admissionCase{
		"Newest": {
			reason: "the newest verified snapshot of the cluster itself",
			args:   args{object: `spec: {source: null}`},
		},
		"Full": {
			reason: "all that can be said about the choice of a snapshot",
			args: args{object: `spec: {source: {backupRef: null, store: ` + store + `, before: '2026-11-25T07:50:00Z', cluster: prod/db, clusterID: 9a1b,
				identity: {secretRef: {name: age}}, unverified: Allow, revisionBump: 0}, whenServing: Replace, formerVolumes: Delete}`},
		},
		"Backup": {
			reason: "an EtcdBackup says where its snapshot is; the rest may be said beside it",
			args:   args{object: source(`backupRef: {name: monday}, identity: {secretRef: {name: age}}, unverified: Allow, revisionBump: 5`)},
		},
		"Survivor":              {reason: "the only member that is left", args: args{object: source(`survivor: {}`)}},
		"SurvivorNamed":         {reason: "one of several that are left", args: args{object: source(`survivor: {member: db-1}, revisionBump: 5`)}},
		"SurvivorEmpty":         {reason: "no name", args: args{object: source(`survivor: {member: ''}`)}, want: []string{`spec.source.survivor.member: Invalid value: "": spec.source.survivor.member in body should be at least 1 chars long`}},
		"SurvivorAndStore":      {reason: "its data is in no store", args: args{object: source(`survivor: {}, store: ` + store)}, want: []string{left}},
		"SurvivorAndSnapshot":   {reason: "one of both", args: args{object: source(`survivor: {}, snapshot: db-1`)}, want: []string{left}},
		"SurvivorAndBackup":     {reason: "one of both", args: args{object: source(`survivor: {}, backupRef: {name: monday}`)}, want: []string{left}},
		"SurvivorAndIdentity":   {reason: "nothing is encrypted", args: args{object: source(`survivor: {}, identity: {secretRef: {name: age}}`)}, want: []string{left}},
		"SurvivorAndUnverified": {reason: "it cannot be verified before", args: args{object: source(`survivor: {}, unverified: Allow`)}, want: []string{left}},
		"NoCluster": {
			reason: "nothing to put back",
			args:   args{object: `spec: {clusterRef: null}`},
			want:   []string{`spec.clusterRef: Required value`},
		},
		"ClusterEmpty": {
			reason: "no name",
			args:   args{object: `spec: {clusterRef: {name: ''}}`},
			want:   []string{`spec.clusterRef.name: Invalid value: "": spec.clusterRef.name in body should be at least 1 chars long`},
		},
		"ClusterTooLong": {
			reason: "no EtcdCluster has such a name",
			args:   args{object: `spec: {clusterRef: {name: ` + strings.Repeat("a", 57) + `}}`},
			want:   []string{`spec.clusterRef.name: Too long: may not be more than 56 bytes`},
		},
		"BackupEmpty": {
			reason: "no name",
			args:   args{object: source(`backupRef: {name: ''}`)},
			want:   []string{`spec.source.backupRef.name: Invalid value: "": spec.source.backupRef.name in body should be at least 1 chars long`},
		},
		"BackupTooLong": {
			reason: "no EtcdBackup has such a name",
			args:   args{object: source(`backupRef: {name: ` + strings.Repeat("a", 57) + `}`)},
			want:   []string{`spec.source.backupRef.name: Too long: may not be more than 56 bytes`},
		},
		"BackupAndStore":     {reason: "the store is said twice", args: args{object: source(`backupRef: {name: monday}, store: ` + store)}, want: []string{alone}},
		"BackupAndSnapshot":  {reason: "so is the snapshot", args: args{object: source(`backupRef: {name: monday}, snapshot: db-1`)}, want: []string{alone}},
		"BackupAndBefore":    {reason: "nothing is to be chosen", args: args{object: source(`backupRef: {name: monday}, before: '2026-11-25T07:50:00Z'`)}, want: []string{alone}},
		"BackupAndCluster":   {reason: "nothing is to be chosen", args: args{object: source(`backupRef: {name: monday}, cluster: prod/db`)}, want: []string{alone}},
		"BackupAndClusterID": {reason: "nothing is to be chosen", args: args{object: source(`backupRef: {name: monday}, clusterID: 9a1b`)}, want: []string{alone}},
		"NameAndTime": {
			reason: "one of both is meant",
			args:   args{object: source(`snapshot: db-1, before: '2026-11-25T07:50:00Z'`)},
			want:   []string{`spec.source.before: Invalid value: before chooses among snapshots, and snapshot is one: leave one of them out`},
		},
		"SnapshotEmpty": {
			reason: "no name",
			args:   args{object: source(`snapshot: ''`)},
			want:   []string{`spec.source.snapshot: Invalid value: "": spec.source.snapshot in body should be at least 1 chars long`},
		},
		"SnapshotTooLong": {
			reason: "no snapshot has such a name",
			args:   args{object: source(`snapshot: ` + strings.Repeat("a", 254))},
			want:   []string{`spec.source.snapshot: Too long: may not be more than 253 bytes`},
		},
		"ClusterWithoutNamespace": {
			reason: "manifests have both",
			args:   args{object: source(`cluster: db`)},
			want:   []string{`spec.source.cluster: Invalid value: "db": cluster is the namespace and the name of the EtcdCluster that the snapshot was taken of, for example prod/db`},
		},
		"ClusterIDTooLong": {
			reason: "etcd has 64 bits for it",
			args:   args{object: source(`clusterID: ` + strings.Repeat("a", 17))},
			want:   []string{`spec.source.clusterID: Too long: may not be more than 16 bytes`},
		},
		"Unverified": {
			reason: "a policy that is none",
			args:   args{object: source(`unverified: Maybe`)},
			want:   []string{`spec.source.unverified: Unsupported value: "Maybe": supported values: "Refuse", "Allow"`},
		},
		"WhenServing": {
			reason: "a policy that is none",
			args:   args{object: `spec: {whenServing: Always}`},
			want:   []string{`spec.whenServing: Unsupported value: "Always": supported values: "Refuse", "Replace"`},
		},
		"WhenServingLowerCase": {
			reason: "nor is it in lower case",
			args:   args{object: `spec: {whenServing: replace}`},
			want:   []string{`spec.whenServing: Unsupported value: "replace": supported values: "Refuse", "Replace"`},
		},
		"FormerVolumes": {
			reason: "a policy that is none",
			args:   args{object: `spec: {formerVolumes: Keep}`},
			want:   []string{`spec.formerVolumes: Unsupported value: "Keep": supported values: "Retain", "Delete"`},
		},
		"RevisionBumpTooLarge": {
			reason: "etcd would run out of revisions",
			args:   args{object: source(`revisionBump: 1000000000000000001`)},
			want:   []string{`spec.source.revisionBump: Invalid value: 1000000000000000001: spec.source.revisionBump in body should be less than or equal to 1000000000000000000`},
		},
		"Same": {
			reason: "applied again",
			args:   args{before: source(`store: ` + store), object: source(`store: ` + store)},
		},
		"Labelled": {
			reason: "what is said about it may change",
			args:   args{before: `{}`, object: `metadata: {labels: {ticket: '4711'}}`},
		},
		"Suspended": {reason: "it is to do nothing yet", args: args{before: source(`store: ` + store), object: `spec: {source: {store: ` + store + `}, suspend: true}`}},
		"Resumed": {
			reason: "its plan was looked at",
			args:   args{before: `spec: {suspend: true, whenServing: Replace, formerVolumes: Delete}`, object: `spec: {suspend: false, whenServing: Replace, formerVolumes: Delete}`},
		},
		"ResumedOtherwise": {
			reason: "it would do what no plan has shown",
			args:   args{before: `spec: {suspend: true}`, object: `spec: {suspend: false, formerVolumes: Delete}`},
			want:   []string{fixed},
		},
		"ResumedOtherSource": {
			reason: "nor from elsewhere",
			args:   args{before: `spec: {suspend: true}`, object: source(`survivor: {}`)},
			want:   []string{fixed},
		},
		"OtherCluster":  {reason: "a record is not rewritten", args: args{before: `{}`, object: `spec: {clusterRef: {name: other}}`}, want: []string{fixed}},
		"OtherStore":    {reason: "nor while it is looked for", args: args{before: source(`store: ` + store), object: source(`store: ` + other)}, want: []string{fixed}},
		"OtherSnapshot": {reason: "nor chosen later", args: args{before: source(`store: ` + store), object: source(`store: ` + store + `, snapshot: db-1`)}, want: []string{fixed}},
		"OtherPolicy": {
			reason: "what was refused is not allowed later: it is another EtcdRestore that is meant",
			args:   args{before: `{}`, object: `spec: {whenServing: Replace}`},
			want:   []string{fixed},
		},
		"OtherRetention": {
			reason: "the volumes may be gone by now",
			args:   args{before: `spec: {formerVolumes: Delete}`, object: `spec: {formerVolumes: Retain}`},
			want:   []string{fixed},
		},
	})
}

// TestRestoreFixed: the rule that keeps the spec of an EtcdRestore as it is names every field but
// suspend.
func TestRestoreFixed(t *testing.T) {
	t.Parallel()
	rule := content(t, "etcdrestore.go")
	for field := range reflect.TypeFor[EtcdRestoreSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if held := strings.Contains(rule, "self."+name+" == oldSelf."+name); held == (name == "suspend") {
			t.Errorf("spec.%s is held: %t", name, held)
		}
	}
}
