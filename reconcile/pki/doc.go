// Package pki issues the certificates of a cluster, and says in plain words what is wrong with
// those that others have issued.
//
// It knows no Kubernetes, and no clock: what time it is comes in. Read Check first, which is for
// every certificate, Quorate's own or not; then Authority.
package pki
