// Package hostlet stands in, in tests, for what an API server alone lacks: it
// runs every Pod's container as a real etcd process on this machine.
//
// [StartEnv] starts the API server and [Start] a [Hostlet] beside it. The
// Hostlet is then
//
//   - the scheduler: a Pod is bound to the one node there is as soon as its
//     claims exist and can be bound, unless it selects another operating system;
//   - the volume provisioner: a claim is bound when the first Pod uses it
//     (WaitForFirstConsumer), and its data lives in a directory named after the
//     claim's UID, so that a claim created again under the same name is empty;
//   - kubelet: downward API, restarts with back-off, images, cpu and memory
//     changed in place, probes, graceful deletion, and a Pod status that shows
//     all of it. Nothing is limited, but where the limit of memory is less than
//     etcd starts with ([LeastMemory]) its process is killed for it;
//   - the controller of EndpointSlices: one for each Service that selects Pods,
//     without ports and with addresses that lead nowhere, as late as
//     [Hostlet.LagEndpoints] says;
//   - the controller of Jobs, where [Options.Program] names a program: one Pod each;
//   - the controllers that keep a claim while a Pod uses it, and note on it
//     whether one does, and that collect Pods, claims, Services, Secrets, Jobs and disruption
//     budgets whose owners are gone.
//
// Tests disturb it with [Hostlet.Kill], [Hostlet.Starve], [Hostlet.Pause], [Hostlet.Terminate],
// [Hostlet.Wipe], [Hostlet.Spoil], [Hostlet.LoseNode] and [Hostlet.Cordon], and wait for outcomes
// with [Hostlet.WaitFor].
//
// # Addresses instead of names
//
// There is no cluster DNS. Each Pod name has a loopback address of its own for
// as long as the test binary runs, and wherever a Pod's DNS name occurs in a
// URL of a container's arguments or environment the address takes its place.
// etcd's member list therefore shows addresses; a client that compares it with
// the names in a spec passes URLs through [Hostlet.Substitute] on the way to
// etcd and through [Hostlet.PeerURL] on the way back. Listen URLs of all
// addresses (0.0.0.0 and [::]) listen on the Pod's own address only.
//
// # What it does not do
//
// One process a Pod at a time, of the container called etcd or the first: other
// containers are only said to run, and init containers to be done but for those
// of [Options.Program]. No volumes
// but claims, Secrets (written again when they change) and emptyDir, no
// environment from Secrets or ConfigMaps: such a
// Pod waits with CreateContainerConfigError and says why. No resource limits,
// no user IDs, no affinity, no Service addresses, no TLS by DNS name. Only
// background deletion of owners is collected. A Pod's localhost is the
// machine's.
// Addresses other than 127.0.0.1 answer without set-up on Linux only, and only
// there do the processes die with the test binary whatever ends it.
package hostlet
