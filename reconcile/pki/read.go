package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What is read of a file at most. A certificate has one or two KiB.
const (
	mostBytes        = 64 << 10
	mostCertificates = 16
)

const (
	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
)

// blocks are those of a PEM file. Text around them is passed over, and a block that is cut off is
// not.
func blocks(name string, file []byte) ([]*pem.Block, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		return nil, fmt.Errorf("%s is missing or empty", name)
	}
	if len(file) > mostBytes {
		return nil, fmt.Errorf("%s is too large: %d bytes; the limit is %d", name, len(file), mostBytes)
	}
	var all []*pem.Block
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		all = append(all, block)
	}
	if begun := bytes.Count(file, []byte("-----BEGIN ")); begun > len(all) {
		return nil, fmt.Errorf("%s is cut off or damaged: %d of its %d PEM blocks can be read", name, len(all), begun)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is not in PEM, which begins with -----BEGIN", name)
	}
	return all, nil
}

// certificates are those of a PEM file, in its order.
func certificates(name string, file []byte) ([]*x509.Certificate, error) {
	all, err := blocks(name, file)
	if err != nil {
		return nil, err
	}
	if len(all) > mostCertificates {
		return nil, fmt.Errorf("%s has %d certificates; the limit is %d", name, len(all), mostCertificates)
	}
	read := make([]*x509.Certificate, 0, len(all))
	for n, block := range all {
		if block.Type != blockCertificate {
			return nil, fmt.Errorf("%s has a block of type %s: only certificates belong there", name, block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of %s cannot be read: %w", n+1, name, err)
		}
		read = append(read, c)
	}
	return read, nil
}

// privateKey is the one of a PEM file. Its errors have nothing of what is in it.
func privateKey(name string, file []byte) (crypto.Signer, error) {
	all, err := blocks(name, file)
	if err != nil {
		return nil, err
	}
	for _, block := range all {
		var key any
		switch {
		case strings.HasPrefix(block.Type, "ENCRYPTED ") || block.Headers["DEK-Info"] != "":
			return nil, fmt.Errorf("%s is encrypted, and etcd cannot decrypt it: write the plain key", name)
		case block.Type == blockKey:
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default: // such as the parameters of a curve
			continue
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, fmt.Errorf("the private key in %s cannot be read", name)
		}
		return signer, nil
	}
	return nil, fmt.Errorf("%s has no private key", name)
}

// belongs reports whether a key is that of a certificate.
func belongs(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

// encoded is the PEM of one block.
func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

var errNoAuthority = errors.New("it is not the certificate of an authority")

// Hosts are the names and addresses that the first certificate of a file is valid for; none where
// it cannot be read.
func Hosts(file []byte) []string {
	chain, err := certificates("", file)
	if err != nil {
		return nil
	}
	hosts := slices.Clone(chain[0].DNSNames)
	for _, ip := range chain[0].IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// Subject is the common name of the first certificate of a file; empty where it cannot be read.
func Subject(file []byte) string {
	chain, err := certificates("", file)
	if err != nil {
		return ""
	}
	return chain[0].Subject.CommonName
}

// Issuer is the fingerprint of the authority, among those that are trusted, that has issued a
// certificate, and when the certificate expires; zero where either cannot be read.
func Issuer(files map[string][]byte, names Names) (authority string, expires time.Time) {
	chain, err := certificates(names.Cert, files[names.Cert])
	if err != nil {
		return "", time.Time{}
	}
	trusted, err := certificates(names.CA, files[names.CA])
	if err != nil {
		return "", time.Time{}
	}
	for _, c := range trusted {
		if chain[0].CheckSignatureFrom(c) == nil {
			return fingerprint(c), chain[0].NotAfter
		}
	}
	return "", time.Time{}
}
