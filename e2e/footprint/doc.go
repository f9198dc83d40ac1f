// Package footprint measures what the operator takes for many EtcdClusters, and how long they take.
// The operator is its own binary, as a process beside a real API server. Stand-ins answer for
// kubelets and etcd.
//
//	go test -tags e2e -count 1 -timeout 1h -v ./e2e/footprint -clusters 100,1000
package footprint
