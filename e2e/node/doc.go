// Package node gives any Linux machine that has Go, Docker and make a real Kubernetes: binaries for
// envtest, node images and clusters for kind, and the etcd images that run on them.
//
// Where a container registry answers, images are pulled. Where none does, they are built from Go
// modules and Debian packages alone, so that the end-to-end tests need nothing that the project
// does not pin. What is built is kept in a cache, named after its recipe: the same recipe is never
// built twice, and a changed one never finds the old result.
//
// The newest Kubernetes is built with the same or newer versions of its libraries than it was
// released with: those of the project's go.mod. So the compiler's work is shared with the project's
// own packages. Every other program is built with the versions that it was released with.
//
// Read Assets for the binaries, Image for the node image and Up for the cluster. The package knows
// nothing of Quorate itself but that file, and it touches no container, image or cluster that it
// was not asked for by name.
package node
