package snapshot

import (
	"context"
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

// Errors of decrypt: no identity was given, or none of a recipient.
var (
	errNoIdentity    = fmt.Errorf("it is encrypted: %w", ErrIdentity)
	errOtherIdentity = fmt.Errorf("it is encrypted, and to other recipients than the given identity: %w", ErrIdentity)
)

// decrypt reads what encrypt has written.
func decrypt(from io.Reader, identities []age.Identity) (io.Reader, error) {
	if len(identities) == 0 {
		return nil, errNoIdentity
	}
	opened, err := age.Decrypt(from, identities...)
	if _, others := errors.AsType[*age.NoIdentityMatchError](err); others {
		return nil, errOtherIdentity
	}
	return opened, err
}

// Readable reads the beginning of a stored snapshot, and returns ErrIdentity where it is encrypted
// and none of the identities decrypts it.
func Readable(ctx context.Context, store Store, m Manifest, identities []age.Identity) error {
	if !m.Encrypted {
		return nil
	}
	opened, err := store.Open(ctx, m.Object)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", m.Name, err)
	}
	defer opened.Close()
	read := &object{Reader: ctxReader{ctx, opened}}
	_, err = decrypt(read, identities)
	switch {
	case read.err != nil:
		return fmt.Errorf("read snapshot %s from %s: %w", m.Name, store.Location(m.Object), read.err)
	case errors.Is(err, ErrIdentity):
		return fmt.Errorf("snapshot %s: %w", m.Name, err)
	case err != nil:
		return &Damage{Name: m.Name, Check: CheckEncryption, Detail: err.Error()}
	}
	return nil
}
