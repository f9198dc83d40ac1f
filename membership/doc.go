// Package membership decides what happens to the members of one etcd cluster, and speaks to etcd.
//
// Plan is the whole decision: a pure function from what is wanted (Desired) and what was seen
// (Observed) to exactly one Step. Its rules are one ordered list in phases.go; the order is the
// policy. It knows no Kubernetes: an Instance is what a member runs in and keeps its data on,
// whatever that is made of, so that the same code serves the operator, tables of tests and the
// exploration of its state space. Client is the other half: the few calls of etcd's API that are
// needed to fill in an Observed.
//
// Read Observed, Step and Phases first.
package membership
