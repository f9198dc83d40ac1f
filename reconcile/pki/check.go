package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// Names are those of the files that belong together: a certificate with its chain, its key, and the
// authority that is trusted.
type Names struct{ Cert, Key, CA string }

// Use is what a certificate must be good for.
type Use struct {
	// Hosts are DNS names and IP addresses. A name that begins with "*." must be there as it is.
	Hosts []string
	// Server and Client are the two sides of a connection.
	Server, Client bool
}

// Check says why files cannot be used, in plain words and naming the file; nil where they can,
// until the time that is returned. The words are the same as long as the files are.
func Check(files map[string][]byte, names Names, use Use, now time.Time) (ends time.Time, _ error) {
	chain, err := certificates(names.Cert, files[names.Cert])
	if err != nil {
		return ends, err
	}
	key, err := privateKey(names.Key, files[names.Key])
	if err != nil {
		return ends, err
	}
	roots, err := certificates(names.CA, files[names.CA])
	if err != nil {
		return ends, err
	}
	leaf := chain[0]
	if !belongs(key, leaf) {
		for _, c := range chain[1:] {
			if belongs(key, c) {
				return ends, fmt.Errorf("%s is in the wrong order: write the certificate that %s belongs to first, and those of its authorities after it", names.Cert, names.Key)
			}
		}
		return ends, fmt.Errorf("%s does not belong to the certificate in %s", names.Key, names.Cert)
	}
	if err := timely(names.Cert, leaf, now); err != nil {
		return ends, err
	}
	if ends, err = verify(names, chain, roots, use, now); err != nil {
		return ends, err
	}
	return ends, fits(names.Cert, leaf, use)
}

// Instant is a time as messages have it.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// timely says why a certificate is not valid now.
func timely(name string, c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("%s expired at %s", name, Instant(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Errorf("%s is not valid before %s", name, Instant(c.NotBefore))
	default:
		return nil
	}
}

// verify says why the first certificate of a chain cannot be traced to one of the roots, or until
// when it can.
func verify(names Names, chain, roots []*x509.Certificate, use Use, now time.Time) (ends time.Time, _ error) {
	trusted, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range roots {
		trusted.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	options := x509.VerifyOptions{Roots: trusted, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	traced, err := chain[0].Verify(options)
	if err == nil {
		return lasts(traced), use.allowed(names.Cert, chain[0], options)
	}
	for _, c := range append(chain[1:], roots...) {
		if timely("", c, now) != nil {
			return ends, fmt.Errorf("the authority of %s: %w", names.Cert, timely("its certificate", c, now))
		}
	}
	return ends, fmt.Errorf("%s was not issued by an authority in %s", names.Cert, names.CA)
}

// lasts is until when the best of several chains is valid.
func lasts(chains [][]*x509.Certificate) (latest time.Time) {
	for _, chain := range chains {
		end := chain[0].NotAfter
		for _, c := range chain[1:] {
			if c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(latest) {
			latest = end
		}
	}
	return latest
}

// allowed says for what the authorities of a certificate do not issue, though it says so itself.
func (u Use) allowed(name string, c *x509.Certificate, options x509.VerifyOptions) error {
	for _, w := range u.wanted() {
		options.KeyUsages = []x509.ExtKeyUsage{w.usage}
		if _, err := c.Verify(options); err != nil && allows(c, w.usage) {
			return fmt.Errorf("an authority of %s is not for %s: its extended key usages lack that", name, w.words)
		}
	}
	return nil
}

// usage is a side of a connection.
type usage struct {
	usage x509.ExtKeyUsage
	words string
}

func (u Use) wanted() []usage {
	var all []usage
	if u.Server {
		all = append(all, usage{x509.ExtKeyUsageServerAuth, "server authentication"})
	}
	if u.Client {
		all = append(all, usage{x509.ExtKeyUsageClientAuth, "client authentication"})
	}
	return all
}

// fits says what a certificate is not good for.
func fits(name string, c *x509.Certificate, use Use) error {
	for _, w := range use.wanted() {
		if !allows(c, w.usage) {
			return fmt.Errorf("%s is not for %s: its extended key usages lack it", name, w.words)
		}
	}
	for _, host := range use.Hosts {
		if c.VerifyHostname(host) != nil {
			return fmt.Errorf("%s is not valid for %s: its subject alternative names lack it", name, host)
		}
	}
	return nil
}

// allows reports whether a certificate may be used so. One that names no usage may be used for all.
func allows(c *x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(c.ExtKeyUsage) == 0 && len(c.UnknownExtKeyUsage) == 0 {
		return true
	}
	for _, u := range c.ExtKeyUsage {
		if u == usage || u == x509.ExtKeyUsageAny {
			return true
		}
	}
	return false
}

// Config is how a client with these files connects. Whom it connects to must be set in a copy of
// it. No session is resumed: each connection shows which certificate the server presents now.
func Config(files map[string][]byte, names Names, now time.Time) (*tls.Config, error) {
	if _, err := Check(files, names, Use{Client: true}, now); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(files[names.Cert], files[names.Key])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", names.Cert, names.Key, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(files[names.CA])
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair},
	}, nil
}

// CommonName is the name in the certificate that a configuration of Config shows; empty where it
// has none, or there is no configuration.
func CommonName(config *tls.Config) string {
	if config == nil || len(config.Certificates) == 0 {
		return ""
	}
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil { // Config has read it
		return ""
	}
	return leaf.Subject.CommonName
}

// Same reports whether two configurations of Config have the same certificate and authorities. Each
// may be nil.
func Same(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.RootCAs.Equal(b.RootCAs) && slices.EqualFunc(a.Certificates[0].Certificate, b.Certificates[0].Certificate, bytes.Equal)
}
