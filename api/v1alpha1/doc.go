// Package v1alpha1 holds the API of Quorate: the EtcdCluster kind, the names of what is made for
// it, and the vocabulary of its status (condition types and reasons).
//
// Read EtcdClusterSpec first, then EtcdClusterStatus. Everything that the spec alone can show to be
// wrong is refused by the schema, with a message that says what to write instead; what only the
// running cluster can show becomes the Stalled condition.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=etcd.quorate.dev
package v1alpha1
