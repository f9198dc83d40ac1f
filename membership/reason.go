package membership

// Reason says why a step was decided. The values are those of the API, so that a reason goes unchanged into condition,
// event and log.
type Reason string

// The reasons of steps.
const (
	Healthy            Reason = "Healthy"
	Hibernated         Reason = "Hibernated"
	Hibernating        Reason = "Hibernating"
	Suspended          Reason = "Suspended"
	Deleting           Reason = "Deleting"
	Provisioning       Reason = "Provisioning"
	Bootstrapping      Reason = "Bootstrapping"
	Formed             Reason = "Formed"
	Starting           Reason = "Starting"
	Recording          Reason = "Recording"
	Replacing          Reason = "Replacing"
	BackOff            Reason = "BackOff"
	ScalingUp          Reason = "ScalingUp"
	ScalingDown        Reason = "ScalingDown"
	Joining            Reason = "Joining"
	MemberLost         Reason = "MemberLost"
	MemberFailed       Reason = "MemberFailed"
	Retiring           Reason = "Retiring"
	Terminating        Reason = "Terminating"
	PodPending         Reason = "PodPending"
	MemberDown         Reason = "MemberDown"
	QuorumLost         Reason = "QuorumLost"
	Unreachable        Reason = "Unreachable"
	AlarmRaised        Reason = "Alarm"
	CorruptMember      Reason = "CorruptMember"
	DataDiffers        Reason = "DataDiffers"
	DataLost           Reason = "DataLost"
	VolumeReplaced     Reason = "VolumeReplaced"
	ForeignMember      Reason = "ForeignMember"
	ForeignObject      Reason = "ForeignObject"
	ClusterIDMismatch  Reason = "ClusterIDMismatch"
	Changing           Reason = "Changing"
	ChangeFailed       Reason = "ChangeFailed"
	Downgrading        Reason = "Downgrading"
	Moving             Reason = "Moving"
	VolumeTooSmall     Reason = "VolumeTooSmall"
	VersionNotAllowed  Reason = "VersionNotAllowed"
	VersionMismatch    Reason = "VersionMismatch"
	ChangeNotSupported Reason = "ChangeNotSupported"
	InvalidSpec        Reason = "InvalidSpec"
)
