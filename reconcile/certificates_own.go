package reconcile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// endsSoon is how long before the end of a certificate that others renew the status warns.
const endsSoon = 3 * 24 * time.Hour

// ownClients looks at the Secrets of others with what clients and the operator need, and whether
// they go together.
func (l *inspection) ownClients(ctx context.Context) error {
	const server, operator = "spec.tls.client.secretRef", "spec.tls.client.operatorSecretRef"
	members, agents := l.c.ServerSecret(), l.c.OperatorSecret()
	if err := l.own(ctx, members, server, pki.Use{Hosts: render.RequiredServerHosts(l.c), Server: true, Client: true}); err != nil {
		return err
	}
	if err := l.own(ctx, agents, operator, pki.Use{Client: true}); err != nil {
		return err
	}
	m, err := l.get(ctx, members)
	if err != nil || m == nil {
		return err
	}
	a, err := l.get(ctx, agents)
	if err != nil || a == nil {
		return err
	}
	if _, wrong := pki.Check(crossed(a.Data, m.Data), files, pki.Use{Client: true}, l.now); wrong != nil {
		return wrongSecret(agents, operator, fmt.Errorf("members would refuse it: its certificate was not issued by an authority in %s of Secret %s (%w)", api.SecretCA, members, wrong))
	}
	if config, err := pki.Config(a.Data, files, l.now); err == nil && l.otherUser(config) != nil {
		return wrongSecret(agents, operator, l.otherUser(config))
	}
	if _, wrong := pki.Check(crossed(m.Data, a.Data), files, pki.Use{Server: true}, l.now); wrong != nil {
		return wrongSecret(agents, operator, fmt.Errorf("the members would be refused: the certificate in Secret %s was not issued by an authority in %s of this one (%w)", members, api.SecretCA, wrong))
	}
	return nil
}

// otherUser is why the operator does not connect with a certificate while etcd authenticates
// clients: it names another user than the one that is known to have the role root.
func (l *inspection) otherUser(config *tls.Config) error {
	name := pki.CommonName(config)
	switch {
	case !l.c.WantsAuth() && !l.c.HasAuth():
		return nil
	case name == "":
		return errors.New("its certificate has no common name, which is Quorate's user in etcd (spec.auth): issue it with one")
	case l.c.HasAuth() && l.c.Status.Auth.User != "" && l.c.Status.Auth.User != name:
		return fmt.Errorf("its certificate has the common name %s, and Quorate's user in etcd is %s (status.auth.user): issue it for that name, or set spec.auth.enabled to false before you change it", name, l.c.Status.Auth.User)
	}
	return nil
}

// crossed are the certificate and key of one Secret, and the authorities that another one trusts.
func crossed(shows, trusts map[string][]byte) map[string][]byte {
	return map[string][]byte{api.SecretCert: shows[api.SecretCert], api.SecretKey: shows[api.SecretKey], api.SecretCA: trusts[api.SecretCA]}
}

// own looks at a Secret that others write.
func (l *inspection) own(ctx context.Context, name, field string, use pki.Use) error {
	secret, err := l.get(ctx, name)
	if err != nil {
		return err
	}
	if secret == nil {
		return wrongSecret(name, field, fmt.Errorf("it does not exist: create it with %s, %s and %s", api.SecretCert, api.SecretKey, api.SecretCA))
	}
	ends, wrong := pki.Check(secret.Data, files, use, l.now)
	if wrong != nil {
		return wrongSecret(name, field, wrong)
	}
	if !l.now.Before(ends.Add(-endsSoon)) {
		l.warn(api.ReasonCertificates, fmt.Sprintf("the certificate in Secret %s (%s) expires at %s: renew it; nothing needs a restart", name, field, pki.Instant(ends)))
	}
	l.lookBy(ends)
	return nil
}

func wrongSecret(name, field string, wrong error) error {
	return &certificatesError{api.ReasonCertificates, fmt.Sprintf("Secret %s (%s): %v. Running members go on; no Pod is created or changed until this is fixed", name, field, wrong)}
}
