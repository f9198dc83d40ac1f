// Package reconcile makes an EtcdCluster true: observe, plan, act, report.
//
// It is the only package that knows both Kubernetes and etcd. It decides nothing by itself: what
// happens to members is membership.Plan's, what objects look like is render's, and this package
// carries facts to the one and steps to the other. One pass of Reconcile takes one step. Nothing
// that it keeps in memory matters: after a crash between any two writes the next pass sees from the
// objects and from etcd how far the last one got.
//
// Read Reconciler.Reconcile first, then observe.go for the facts, act.go for the effects and
// status.go for what users see.
package reconcile
