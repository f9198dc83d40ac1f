package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EtcdBackupSchedule makes EtcdBackups of one etcd cluster at the times that it names, and deletes
// those that its retention does not keep. Its EtcdBackups are not owned by it: they stay when it is
// deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=etcdbs,categories=etcd
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="It makes EtcdBackups, and the last one that ended is good"
// +kubebuilder:printcolumn:name=Active,type=string,JSONPath=`.status.active`,description="The EtcdBackup that has not ended"
// +kubebuilder:printcolumn:name=Last-Good,type=date,JSONPath=`.status.lastSuccessfulTime`,description="When the last verified snapshot was taken"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata",message="metadata.name must be a DNS label of at most 47 characters (lower-case letters, digits and '-'): its EtcdBackups are called <name>-<minutes since 1970>"
type EtcdBackupSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says when EtcdBackups are made, of what, and which of them stay.
	// +required
	Spec EtcdBackupScheduleSpec `json:"spec"`

	// status is what became of it; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdBackupScheduleStatus `json:"status,omitempty"`
}

// EtcdBackupScheduleList is a list of EtcdBackupSchedule.
//
// +kubebuilder:object:root=true
type EtcdBackupScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackupSchedule `json:"items"`
}

// EtcdBackupScheduleSpec says when EtcdBackups are made, of what, and which of them stay.
type EtcdBackupScheduleSpec struct {
	// clusterRef names the EtcdCluster, of the same namespace.
	// +required
	ClusterRef ClusterReference `json:"clusterRef"`

	// schedule is when, in the five fields of cron: minute, hour, day of the month, month, day of
	// the week; or @hourly, @daily, @weekly, @monthly or @yearly. Where day of the month and day of
	// the week are both given, either is enough, as in a CronJob. Only one EtcdBackup runs at a
	// time: when it is time for another one meanwhile, that follows when the first has ended. Of
	// several times that were missed only the last is made up for.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^@(hourly|daily|midnight|weekly|monthly|yearly|annually)$') || self.matches('^[^@ =]+( +[^ =]+){4}$')",message="spec.schedule must have the five fields of cron, minute, hour, day of the month, month, day of the week, for example 0 */6 * * *; or be @hourly, @daily, @weekly, @monthly or @yearly. The time zone is spec.timeZone"
	Schedule string `json:"schedule"`

	// timeZone is that of the schedule and of the days, weeks and months of the retention, by its
	// name in the IANA database, for example Europe/Berlin. Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]+([-+_/][A-Za-z0-9]+)*$') && self != 'Local'",message="spec.timeZone must be a name of the IANA database, for example Europe/Berlin or Etc/UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops the making of EtcdBackups, and the retention. Those that run go on. Default
	// false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadline is how late an EtcdBackup may be made, because the operator did not run, or
	// another one still did. After it that time is left out. Default: until the next time.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="spec.startingDeadline must be a duration from 10s to 168h, for example 30m or 1m30s"
	StartingDeadline *Duration `json:"startingDeadline,omitempty"`

	// retention says which EtcdBackups of this schedule stay. Default: all.
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`

	// template is what the EtcdBackups are made of.
	// +optional
	Template BackupTemplate `json:"template,omitempty"`
}

// BackupRetention says which EtcdBackups stay: one that any of the numbers counts, and that is not
// older than maxAge. Only those that are verified are counted. The newest verified one always
// stays, and so do all that are newer than it. A day, a week or a month in which none was taken
// does not count.
//
// +kubebuilder:validation:MinProperties=1
type BackupRetention struct {
	// last is how many of the newest verified ones stay. The newest verified one, and all that are
	// newer, stay in any case.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Last int32 `json:"last,omitempty"`

	// daily is of how many days the newest stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Daily int32 `json:"daily,omitempty"`

	// weekly is of how many weeks, from Monday, the newest stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weekly int32 `json:"weekly,omitempty"`

	// monthly is of how many months the newest stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Monthly int32 `json:"monthly,omitempty"`

	// maxAge is the age after which none stays but the newest verified one, in hours, for example
	// 720h. Default: no bound.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('1h')",message="spec.retention.maxAge must be a duration of at least 1h, for example 720h for 30 days"
	MaxAge *Duration `json:"maxAge,omitempty"`
}

// BackupTemplate is what the EtcdBackups of a schedule are made of.
type BackupTemplate struct {
	// metadata is added to them.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`

	// spec is theirs, with the cluster of the schedule. A change is for those that are made after
	// it.
	// +optional
	Spec BackupTemplateSpec `json:"spec,omitempty"`
}

// BackupTemplateSpec is the spec of the EtcdBackups of a schedule.
type BackupTemplateSpec struct {
	// store is where the snapshots go. Default: spec.backup.store of the EtcdCluster.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// verify is Restore (default) or Hash, as of an EtcdBackup.
	// +optional
	// +kubebuilder:validation:Enum=Restore;Hash
	Verify VerifyMode `json:"verify,omitempty"`

	// deletionPolicy is what the deletion of an EtcdBackup does to the stored snapshot, by a person
	// or by the retention. Delete (default here, unlike on an EtcdBackup): it is deleted too.
	// Retain: it stays in the store, and something else must delete it.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	DeletionPolicy RetentionPolicy `json:"deletionPolicy,omitempty"`

	// encryption encrypts the snapshots before they leave the Pod. Default: spec.backup.encryption
	// of the EtcdCluster.
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// EtcdBackupScheduleStatus is what became of a schedule.
type EtcdBackupScheduleStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: True while EtcdBackups are made and the last one that ended is
	// good; and Stalled, only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// active is the EtcdBackup that has not ended.
	// +optional
	// +kubebuilder:validation:MaxLength=56
	Active string `json:"active,omitempty"`

	// lastScheduleTime is the last time for which an EtcdBackup was made.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastSuccessfulTime is when the last verified snapshot was taken.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// nextScheduleTime is the next time for which one will be made.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
}
