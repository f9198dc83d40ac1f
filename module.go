// Package quorate tells of the module itself.
package quorate

import _ "embed"

// GoMod is the go.mod of the module.
//
//go:embed go.mod
var GoMod []byte
