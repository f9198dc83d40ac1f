package snapshot

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
)

// encrypt returns a writer whose text only the recipients can read. Closing it writes its end, and
// leaves to open. Without recipients what is written passes as it is.
func encrypt(to io.Writer, recipients []string) (io.WriteCloser, error) {
	if len(recipients) == 0 {
		return nopCloser{to}, nil
	}
	parsed, err := age.ParseRecipients(strings.NewReader(strings.Join(recipients, "\n")))
	if err != nil {
		return nil, fmt.Errorf("read the age recipients (age1...): %w", err)
	}
	w, err := age.Encrypt(to, parsed...)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return w, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// errNoIdentity asks for what an encrypted snapshot is read with.
var errNoIdentity = errors.New("it is encrypted: give the identity (AGE-SECRET-KEY-...) of one of its recipients")

// decrypt reads what encrypt has written.
func decrypt(from io.Reader, identities []age.Identity) (io.Reader, error) {
	if len(identities) == 0 {
		return nil, errNoIdentity
	}
	return age.Decrypt(from, identities...)
}
