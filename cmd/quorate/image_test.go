package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestImageHasNothing: the image has the binary alone, so certificate authorities and time zones
// must be in that. The test runs itself where there are no others.
func TestImageHasNothing(t *testing.T) {
	t.Parallel()
	const alone = "QUORATE_TEST_ALONE"
	if os.Getenv(alone) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestImageHasNothing$")
		cmd.Env = append(os.Environ(), alone+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without files of the system: %v:\n%s", err, out)
		}
		return
	}
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		t.Error(err)
	}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if authorities.Equal(x509.NewCertPool()) {
		t.Error("no certificate authority is known")
	}
}
