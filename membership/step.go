package membership

import "strings"

// Action is the kind of a Step.
type Action string

// The actions. All but None, Wait and Stall have effects.
const (
	// None: everything is as wanted.
	None Action = "None"
	// Wait: something is under way that only time brings to an end.
	Wait Action = "Wait"
	// Stall: nothing goes on until a person acts, and what runs goes on running.
	Stall Action = "Stall"
	// Provision creates the volumes of the named members.
	Provision Action = "Provision"
	// Bootstrap creates the Pods of the named members as first members of a cluster that has never formed.
	Bootstrap Action = "Bootstrap"
	// Record writes on the volumes of the named members whose data they hold, as the members themselves have said.
	Record Action = "Record"
	// Start creates the Pods of the named members over the volumes that hold their data.
	Start Action = "Start"
	// Stop deletes the Pods of the named members and keeps their volumes.
	Stop Action = "Stop"
)

// Step is one decision. Only acts that are safe together name several members; what changes quorum is done one at a time.
type Step struct {
	Action  Action
	Members []string // sorted by ordinal
	Version Version  // Bootstrap, Start: what the Pods run
	First   First    // Provision, Bootstrap: the first start that they belong to
	Reason  Reason   // the same in condition, event and log
	Message string   // for people; the same as long as the facts are
}

// First is a first start: what its members must agree about so that they form one cluster with one ID.
type First struct {
	Token string
	Size  int
}

// Acts reports whether the step has an effect.
func (s Step) Acts() bool { return s.Action != None && s.Action != Wait && s.Action != Stall }

// String is the step in one line, for logs and failing tests.
func (s Step) String() string {
	return strings.Join(append([]string{string(s.Action)}, s.Members...), " ") + " (" + string(s.Reason) + "): " + s.Message
}
