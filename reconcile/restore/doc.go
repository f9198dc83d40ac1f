// Package restore tells of EtcdRestores what becomes of them. The EtcdCluster that an EtcdRestore
// names carries it out, in its own status and by its own reconciler: here that is only said where a
// person looks for it.
package restore
