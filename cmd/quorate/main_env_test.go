//go:build env

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain makes this test the command itself, where it is called by its name: what is typed by
// hand is run as it is typed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "quorate" {
		main()
		return
	}
	os.Exit(m.Run())
}
