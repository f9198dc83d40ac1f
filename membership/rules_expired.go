package membership

// recreateExpired: etcd reads ca.crt only when it starts. A member that trusts only an authority
// that has expired takes no new connection, neither of clients nor of the operator or of its peers.
// So the Pods are recreated together: the first ones could not reach the others. With medium Memory
// the data would be lost; where a quorum answers, such a member is replaced as one that is down.
func recreateExpired(d Desired, o Observed) (Step, bool) {
	why := ""
	members := names(o.Instances, func(i Instance) bool {
		is := i.Pod.Expired != "" && !i.Pod.Terminating && !i.Pod.Foreign && !i.Pod.Provisions && !i.Volume.Terminating && o.holds(i)
		if is {
			why = i.Pod.Expired
		}
		return is
	})
	step := Step{Action: Stop, Members: members, Reason: Changing, Message: "recreating the Pods of " + list(members) + " at once: " + why}
	if d.Ephemeral {
		step.Action, step.Members, step.Reason = Stall, nil, ChangeNotSupported
		step.Message = why + ", and " + list(members) + " trust no other one. With spec.storage.medium Memory a member's data goes with its Pod: restore the newest snapshot into another EtcdCluster"
	}
	return step, o.Formed() && len(members) > 0 && (!d.Ephemeral || withoutQuorum(d, o))
}
