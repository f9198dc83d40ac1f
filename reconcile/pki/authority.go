package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"time"
)

// How long certificates are valid. A leaf is renewed when a third of that is left.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	LeafLifetime      = 90 * 24 * time.Hour
)

// clockSkew is how much earlier than now a certificate is valid: the clocks of nodes differ.
const clockSkew = 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer // nil: it issues nothing
	trusted     []*x509.Certificate
}

// NewAuthority makes the certificate and the key of an authority, in PEM.
func NewAuthority(name string, now time.Time, lifetime time.Duration) (cert, key []byte, err error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, err = sign(template, template, signer.Public(), signer)
	return cert, key, err
}

// ReadAuthority reads what NewAuthority has made, and says why it cannot sign.
func ReadAuthority(files map[string][]byte, names Names, now time.Time) (*Authority, error) {
	c, key, err := pair(files, names)
	if err != nil {
		return nil, err
	}
	if !c.IsCA || !c.BasicConstraintsValid {
		return nil, fmt.Errorf("%s: %w", names.Cert, errNoAuthority)
	}
	if err := timely(names.Cert, c, now); err != nil {
		return nil, err
	}
	return &Authority{certificate: c, key: key, trusted: []*x509.Certificate{c}}, nil
}

// pair reads a certificate and the key that belongs to it.
func pair(files map[string][]byte, names Names) (*x509.Certificate, crypto.Signer, error) {
	chain, err := certificates(names.Cert, files[names.Cert])
	if err != nil {
		return nil, nil, err
	}
	key, err := privateKey(names.Key, files[names.Key])
	if err != nil {
		return nil, nil, err
	}
	if !belongs(key, chain[0]) {
		return nil, nil, fmt.Errorf("%s does not belong to the certificate in %s", names.Key, names.Cert)
	}
	return chain[0], key, nil
}

// PEM is what is trusted with the authority: its certificate, and those of Beside, in an order that
// does not depend on which of them issues.
func (a *Authority) PEM() []byte { return Encode(a.trusted) }

// Beside is the same authority, of which what it issues is to come with trust in others as well. No
// certificate is trusted twice.
func (a *Authority) Beside(others ...*x509.Certificate) *Authority {
	beside := *a
	beside.trusted = slices.Concat(a.trusted, others)
	slices.SortFunc(beside.trusted, func(x, y *x509.Certificate) int { return strings.Compare(fingerprint(x), fingerprint(y)) })
	beside.trusted = slices.CompactFunc(beside.trusted, (*x509.Certificate).Equal)
	return &beside
}

// Keyless is an authority of which only the certificate is known, or good: it is trusted, and
// issues nothing.
func Keyless(c *x509.Certificate) *Authority {
	return &Authority{certificate: c, trusted: []*x509.Certificate{c}}
}

// Client is how a client connects with a certificate of the authority that is made for it, valid
// for an hour, and trusts the authorities in a file. Whom it connects to must be set in a copy of
// it.
func (a *Authority) Client(name string, trusted []byte, now time.Time) (*tls.Config, error) {
	cert, key, err := a.Issue(name, Use{Client: true}, nil, now, time.Hour)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read what was issued: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}

// Issues reports whether the authority can issue anything.
func (a *Authority) Issues() bool { return a.key != nil }

// Certificate is that of the authority.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Issued reports whether this authority has issued a certificate, whenever that was.
func (a *Authority) Issued(c *x509.Certificate) bool {
	return c.CheckSignatureFrom(a.certificate) == nil
}

// ReadCertificates reads the certificates of a file of authorities, and says why it cannot be used.
// They may have expired. A file with more than most of them is refused.
func ReadCertificates(name string, file []byte, most int) ([]*x509.Certificate, error) {
	all, err := certificates(name, file)
	switch {
	case err != nil:
		return nil, err
	case len(all) > most:
		return nil, fmt.Errorf("%s has %d certificates; the limit is %d", name, len(all), most)
	case slices.ContainsFunc(all, func(c *x509.Certificate) bool { return !c.IsCA || !c.BasicConstraintsValid }):
		return nil, fmt.Errorf("%s: %w", name, errNoAuthority)
	}
	return all, nil
}

// Encode writes certificates in PEM, in their order.
func Encode(all []*x509.Certificate) []byte {
	blocks := make([][]byte, len(all))
	for n, c := range all {
		blocks[n] = encoded(blockCertificate, c.Raw)
	}
	return bytes.Join(blocks, nil)
}

// Expired reports whether the authority's own certificate is not valid any more, and with it all
// that it has issued.
func Expired(c *x509.Certificate, now time.Time) bool { return now.After(c.NotAfter) }

// Ends is until when what the authority issues can be valid.
func (a *Authority) Ends() time.Time { return a.certificate.NotAfter }

// Fingerprint is the SHA-256 of the authority's certificate, in hexadecimal.
func (a *Authority) Fingerprint() string { return fingerprint(a.certificate) }

// Fingerprint is the SHA-256 of the only certificate in a file, in hexadecimal; empty where that
// cannot be read, or has others beside it.
func Fingerprint(file []byte) string {
	all := Fingerprints(file)
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// Fingerprints are the same of all certificates in a file, sorted; none where it cannot be read.
func Fingerprints(file []byte) []string {
	all, err := certificates("", file)
	if err != nil {
		return nil
	}
	prints := make([]string, 0, len(all))
	for _, c := range all {
		prints = append(prints, fingerprint(c))
	}
	slices.Sort(prints)
	return prints
}

// Find are the certificates of these fingerprints in a file; none where it cannot be read.
func Find(file []byte, wanted ...string) []*x509.Certificate {
	all, err := certificates("", file)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(c *x509.Certificate) bool { return !slices.Contains(wanted, fingerprint(c)) })
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Issue makes a certificate of that name, and its key, in PEM. A key that was there is kept:
// etcd reads certificate and key one after the other at each handshake, and a renewal in between
// must not give it two that do not belong together.
func (a *Authority) Issue(name string, use Use, earlier []byte, now time.Time, lifetime time.Duration) (cert, key []byte, err error) {
	if a.key == nil {
		return nil, nil, errors.New("its key is lost, or the authority has expired")
	}
	signer, key, err := kept(earlier)
	if err != nil {
		signer, key, err = newKey()
	}
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    a.end(now, lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: use.usages(),
	}
	template.DNSNames, template.IPAddresses = use.names()
	cert, err = sign(template, a.certificate, signer.Public(), a.key)
	return cert, key, err
}

func (a *Authority) end(now time.Time, lifetime time.Duration) time.Time {
	if end := now.Add(lifetime); end.Before(a.Ends()) {
		return end
	}
	return a.Ends()
}

// Stale says why a certificate is to be reissued: it cannot be used, is another authority's or for
// other names, or expires soon. Where the authority issues nothing, any that can be used and comes
// with the right trust is good. It returns when to ask again.
func (a *Authority) Stale(files map[string][]byte, names Names, use Use, now time.Time, lifetime time.Duration) (again time.Time, _ error) {
	ends, err := Check(files, names, use, now)
	if err != nil {
		return now, err
	}
	if !bytes.Equal(files[names.CA], a.PEM()) {
		return now, fmt.Errorf("%s does not have exactly the authorities that are to be trusted now", names.CA)
	}
	if a.key == nil { // it would not get better
		return ends, nil
	}
	chain, err := certificates(names.Cert, files[names.Cert])
	if err != nil {
		return now, err
	}
	if !a.Issued(chain[0]) {
		return now, fmt.Errorf("%s was not issued by the authority that issues now", names.Cert)
	}
	dns, addresses := use.names()
	if !slices.Equal(chain[0].DNSNames, dns) || !slices.EqualFunc(chain[0].IPAddresses, addresses, net.IP.Equal) {
		return now, fmt.Errorf("%s has other names than it should", names.Cert)
	}
	switch renewal := ends.Add(-lifetime / 3); {
	case now.Before(renewal):
		return renewal, nil
	case a.end(now, lifetime).After(ends):
		return now, fmt.Errorf("%s expires soon", names.Cert)
	default: // with its authority, and another one would be no better
		return ends, nil
	}
}

// Renew returns what files are to hold for a client of that name, when to look at them again, and
// why they do not hold that now; nil: they do. The certificate is kept where only the file of
// authorities is another one. The key is kept with which such a certificate was issued to this
// client: that of another certificate may be known to others.
func (a *Authority) Renew(name string, data map[string][]byte, names Names, now time.Time, lifetime time.Duration) (next map[string][]byte, again time.Time, stale, _ error) {
	next, use := maps.Clone(data), Use{Client: true}
	check := func() (time.Time, error) {
		again, err := a.Stale(next, names, use, now, lifetime)
		if has := Subject(next[names.Cert]); err == nil && has != name {
			err = fmt.Errorf("%s has the common name %q, and not %q", names.Cert, has, name)
		}
		return again, err
	}
	if again, stale = check(); stale == nil {
		return next, again, nil, nil
	}
	if next == nil {
		next = map[string][]byte{}
	}
	next[names.CA] = a.PEM()
	if again, wrong := check(); wrong == nil {
		return next, again, stale, nil
	}
	cert, key, err := a.Issue(name, use, a.keyOf(name, data, names), now, lifetime)
	if err != nil {
		return nil, again, stale, err
	}
	next[names.Cert], next[names.Key] = cert, key
	again, err = check()
	return next, again, stale, err
}

// keyOf is the key in files, where the certificate beside it is one that this authority, or one
// that is trusted beside it, has issued for that name; else nil.
func (a *Authority) keyOf(name string, data map[string][]byte, names Names) []byte {
	c, _, err := pair(data, names)
	issued := func(by *x509.Certificate) bool { return Keyless(by).Issued(c) }
	if err != nil || c.Subject.CommonName != name || !slices.ContainsFunc(a.trusted, issued) {
		return nil
	}
	return data[names.Key]
}

// names are the DNS names and addresses, without repetition.
func (u Use) names() (dns []string, addresses []net.IP) {
	for n, host := range u.Hosts {
		ip := net.ParseIP(host)
		switch {
		case slices.Contains(u.Hosts[:n], host):
		case ip != nil:
			addresses = append(addresses, ip)
		default:
			dns = append(dns, host)
		}
	}
	return dns, addresses
}

func (u Use) usages() []x509.ExtKeyUsage {
	usages := make([]x509.ExtKeyUsage, 0, len(u.wanted()))
	for _, w := range u.wanted() {
		usages = append(usages, w.usage)
	}
	return usages
}

// kept is a key of our own kind, as it was written.
func kept(file []byte) (crypto.Signer, []byte, error) {
	signer, err := privateKey("the key", file)
	if err != nil {
		return nil, nil, err
	}
	if key, ok := signer.(*ecdsa.PrivateKey); !ok || key.Curve != elliptic.P256() {
		return nil, nil, errors.New("it is a key of another kind")
	}
	return signer, bytes.Clone(file), nil
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, encoded(blockKey, der), nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return encoded(blockCertificate, der), nil
}
