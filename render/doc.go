// Package render turns an EtcdCluster into the Kubernetes objects that make it true, as
// apply-configurations for server-side apply.
//
// It is pure: no context, clock, client or logger, so the controller, the command line and the
// golden tests run the same code. It decides nothing about membership: which member exists, what it
// runs and what it is told at its start comes in as State and Member. Every call returns fresh
// values, because applying an apply-configuration overwrites it.
//
// Read Static (Services and disruption budget), Volume and Pod first; then Bootstrap and Resume,
// which are the fence against a member that lost its data; then the flag table in flags.go.
package render
