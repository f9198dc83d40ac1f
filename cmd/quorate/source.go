package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// sourceFlags say which etcd is asked, and how. Their names are those of etcdctl, and so are the
// variables (ETCDCTL_CACERT for --cacert) that count where a flag was not written.
type sourceFlags struct {
	endpoints                         []string
	cacert, cert, key, user, password string
}

// sourceNames are the flags that a variable may stand for.
var sourceNames = []string{"endpoints", "cacert", "cert", "key", "user", "password"}

func (s *sourceFlags) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&s.endpoints, "endpoints", []string{"http://127.0.0.1:2379"}, "client URLs of the members, separated by commas")
	f.StringVar(&s.cacert, "cacert", "", "file with the CA certificates that the members are checked against (default: those of the system)")
	f.StringVar(&s.cert, "cert", "", "file with the client certificate")
	f.StringVar(&s.key, "key", "", "file with the key of the client certificate")
	f.StringVar(&s.user, "user", "", "NAME or NAME:PASSWORD, where etcd asks for users; it takes the role root")
	f.StringVar(&s.password, "password", "", "password of the user; other people on this machine can read flags, but not ETCDCTL_PASSWORD")
}

// variables sets flags that were not written from the variables of etcdctl.
func (s *sourceFlags) variables(f *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		variable := "ETCDCTL_" + strings.ToUpper(name)
		if value := os.Getenv(variable); value != "" && !f.Changed(name) {
			if err := f.Set(name, value); err != nil {
				return fmt.Errorf("%s: %w", variable, err)
			}
		}
	}
	return nil
}

// source is what the flags, or the variables of etcdctl, come to.
func (s *sourceFlags) source(f *pflag.FlagSet) (snapshot.Source, error) {
	if err := s.variables(f, sourceNames...); err != nil {
		return snapshot.Source{}, err
	}
	config, err := s.tls()
	if err != nil {
		return snapshot.Source{}, err
	}
	endpoints, encrypted, err := endpointURLs(s.endpoints, config != nil)
	if err != nil {
		return snapshot.Source{}, err
	}
	if encrypted && config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	source := snapshot.Source{Endpoints: endpoints, TLS: config}
	source.Username, source.Password, err = s.login(f)
	return source, err
}

// login is a user with a password, or two empty words.
func (s *sourceFlags) login(f *pflag.FlagSet) (user, password string, err error) {
	if err := s.variables(f, "user", "password"); err != nil || s.user == "" {
		return "", "", err
	}
	user, password = s.user, s.password
	if name, after, ok := strings.Cut(s.user, ":"); ok && s.password == "" {
		user, password = name, after
	}
	if password == "" {
		return "", "", fmt.Errorf("--user %s has no password: write --user %s:PASSWORD, or set ETCDCTL_PASSWORD", s.user, s.user)
	}
	return user, password, nil
}

// tls is nil where no flag speaks of it.
func (s *sourceFlags) tls() (*tls.Config, error) {
	if s.cacert == "" && s.cert == "" && s.key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.cacert != "" {
		pem, err := os.ReadFile(s.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert: %s has no certificate: write the file that begins with -----BEGIN CERTIFICATE-----", s.cacert)
		}
	}
	switch {
	case s.cert == "" && s.key == "":
		return config, nil
	case s.cert == "":
		return nil, errors.New("--key without --cert: write both, or neither")
	case s.key == "":
		return nil, errors.New("--cert without --key: write both, or neither")
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("--cert and --key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// endpointURLs gives a scheme to those that have none, as etcdctl does, and tells whether they are
// encrypted.
func endpointURLs(endpoints []string, encrypted bool) ([]string, bool, error) {
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	schemes := map[string]bool{}
	urls := make([]string, 0, len(endpoints))
	for _, endpoint := range endpoints {
		full := endpoint
		if !strings.Contains(endpoint, "://") {
			full = scheme + "://" + endpoint
		}
		u, err := url.Parse(full)
		if err != nil || u.Host == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, false, fmt.Errorf("--endpoints: %q is no client URL of a member: write it as http://10.0.0.1:2379 or https://10.0.0.1:2379", endpoint)
		}
		schemes[u.Scheme] = true
		urls = append(urls, u.Scheme+"://"+u.Host)
	}
	switch {
	case len(urls) == 0:
		return nil, false, errors.New("--endpoints is empty: write the client URLs of the members, such as http://10.0.0.1:2379")
	case schemes["http"] && schemes["https"]:
		return nil, false, errors.New("--endpoints: some are http, some https: the members of a cluster are one or the other")
	case schemes["http"] && encrypted:
		return nil, false, errors.New("--endpoints are http, and --cacert, --cert and --key are for https: write https://, or leave those flags away")
	}
	return urls, schemes["https"], nil
}
