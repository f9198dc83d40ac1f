package membership

import (
	"slices"
	"strings"
)

// The commands that messages tell a person to run. Each is complete but for words in capitals,
// which the reader replaces.

// deleteNode is for a node that is off for good.
const deleteNode = "kubectl delete node NODE (status.members has its name)"

// kubectl is a command for Pods or claims of members.
func (d Desired) kubectl(verb string, members []Instance, rest string) string {
	all := names(members, func(Instance) bool { return true })
	command := "kubectl " + verb + " " + strings.Join(all, " ")
	if d.Namespace != "" {
		command += " -n " + d.Namespace
	}
	return command + rest
}

// etcdctl is a command of etcdctl in the Pod of a member. There the environment has what it needs
// to connect to that member, with TLS or without it.
func (d Desired) etcdctl(member Instance, rest string) string {
	return d.kubectl("exec", []Instance{member}, " -c etcd -- etcdctl "+rest)
}

// etcdctlEach is that command for each of the members.
func (d Desired) etcdctlEach(members []Instance, rest string) string {
	commands := make([]string, 0, len(members))
	for _, i := range members {
		commands = append(commands, d.etcdctl(i, rest))
	}
	return strings.Join(commands, "; ")
}

// anyVoter is a member of which etcd can be asked for what concerns the whole cluster: one that
// serves, if there is one.
func (o Observed) anyVoter() Instance {
	voters := o.voters()
	if n := slices.IndexFunc(voters, Instance.Serves); n >= 0 {
		return voters[n]
	}
	return append(voters, Instance{Name: "POD"})[0]
}
