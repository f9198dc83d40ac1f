// Package footprint measures the CPU and memory of the operator with many EtcdClusters, and how
// long it takes until all of them are Ready. The operator's binary runs as a process beside a real
// API server. Stand-ins answer for kubelets and etcd.
//
// go test -tags e2e -count 1 -timeout 1h -v ./e2e/footprint -clusters 100,1000
package footprint
