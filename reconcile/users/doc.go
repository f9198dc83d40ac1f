// Package users makes EtcdRoles and EtcdUsers true: each is one role, or one user, of one etcd
// cluster. What is to be done in etcd is decided by package membership, which is pure. Whether etcd
// authenticates clients, and Quorate's own user, are seen to by the reconciler of EtcdClusters.
//
// There is no watch of Secrets, nor of etcd: both are read at each look.
package users
