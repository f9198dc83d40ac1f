package reconcile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// handshaker connects to a port of a member with TLS. It returns the certificate that the member
// shows, where it comes so far, and an error where the member does not take the connection.
type handshaker func(ctx context.Context, host string, port int, config *tls.Config) (shown *x509.Certificate, err error)

// handshakeFor bounds a handshake and its answer. A member that serves answers within milliseconds.
const handshakeFor = 2 * time.Second

// handshake is the handshaker for real members. A server refuses a client's certificate after the
// client has found the handshake done (TLS 1.3), so that it takes an answer to know: both ports of
// etcd answer with its version.
func handshake(ctx context.Context, host string, port int, config *tls.Config) (shown *x509.Certificate, _ error) {
	if host == "" {
		return nil, errors.New("its Pod has no address yet")
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeFor)
	defer cancel()
	config = config.Clone()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		shown = state.PeerCertificates[0]
		return nil
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return shown, fmt.Errorf("connect: %w", same(err))
	}
	defer func() { _ = conn.Close() }() // it was only read from
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return shown, fmt.Errorf("bound the connection: %w", err)
		}
	}
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", config.ServerName); err != nil {
		return shown, fmt.Errorf("ask for the version: %w", same(err))
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return shown, fmt.Errorf("read the answer: %w", same(err))
	}
	return shown, nil
}

// same is an error without what is another one at each try: the port of this side, and the time. It
// is told in the status, which would be written each time.
func same(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: op.Err}
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return errors.New("x509: certificate has expired or is not yet valid")
	}
	return err
}
