// Package e2e tells user stories to a real Kubernetes: each test is one, in a namespace of its own
// where Pod Security "restricted" is enforced, on a kind cluster that TestMain makes, with the
// operator installed as a user installs it.
//
// What needs no kubelet is tested where it is faster: the schema in api, decisions in membership,
// life and death against an API server and real etcd processes in reconcile. Here is what only the
// whole can show: images, volumes, Services, scheduling, quota, rights, and what kubectl prints.
//
//	make e2e                                     every kind of story, a share of the rows of each
//	go test -tags e2e ./e2e -skip ^TestBench -workers 3 -long     every row
//	go test -tags e2e ./e2e -skip ^TestBench -workers 3 -seed 7   the share that printed this seed
//	go test -tags e2e ./e2e -run TestBootstrap -keep              one story; the cluster stays
//	go test -tags e2e ./e2e -run TestBootstrap -args --assess Scale   one step of it
package e2e
