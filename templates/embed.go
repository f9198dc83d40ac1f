// Package templates carries the manifests that Quorate is installed from, so that the binary can
// print them anywhere.
package templates

import "embed"

// Install holds the kustomize base, components and overlays under install/; its root installs
// Quorate for a whole cluster.
//
//go:embed install
var Install embed.FS
