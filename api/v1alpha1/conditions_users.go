package v1alpha1

// Reasons of an EtcdRole and an EtcdUser, beside those that they share with an EtcdCluster.
const (
	// ReasonApplied: etcd has the role, or the user, as the spec says.
	//
	// What to do: nothing.
	ReasonApplied = "Applied"
	// ReasonWaiting: the EtcdCluster cannot be asked for now, or Quorate waits for the Secret of
	// spec.certificate, or for the clock of its node; the message says which.
	//
	// What to do: nothing. If it lasts, do what the message says, or look at the conditions of the
	// EtcdCluster.
	ReasonWaiting = "Waiting"
	// ReasonDrifted: the role, or the user, was changed in etcd itself, and spec.drift is Report;
	// the message says how.
	//
	// What to do: change the spec to what etcd has, or set spec.drift to Revert.
	ReasonDrifted = "Drifted"
	// ReasonNameTaken: another EtcdRole or EtcdUser has that name in etcd, or it is Quorate's own
	// user. Nothing is done in etcd for this one.
	//
	// What to do: delete one of the two, as the message says.
	ReasonNameTaken = "NameTaken"
	// ReasonRoleNotFound: etcd has no role of a name in spec.roles. The user has the others.
	//
	// What to do: apply an EtcdRole for each missing name, or correct spec.roles.
	ReasonRoleNotFound = "RoleNotFound"
	// ReasonPasswordInvalid: the password cannot be read, or etcd would refuse it; the message says
	// why. A password that etcd was given before stays valid.
	//
	// What to do: write the Secret as the message says.
	ReasonPasswordInvalid = "PasswordInvalid"
	// ReasonCertificateBlocked: the Secret of spec.certificate cannot be read or written, or
	// belongs to something else; the message says why. A certificate that it holds stays as it is.
	//
	// What to do: what the message says.
	ReasonCertificateBlocked = "CertificateBlocked"
)
