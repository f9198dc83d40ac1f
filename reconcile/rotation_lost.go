package reconcile

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// rotateLost begins a rotation where the authority is lost, and a person asks for another one:
// members go on trusting the certificate of the lost one, which needs no key for that, and of those
// before it, of which members may still show certificates. They are read from what was issued, and
// nothing begins where that of the lost one is not known. The next look goes on with it.
func (l *inspection) rotateLost(ctx context.Context, p plane, secret *corev1.Secret) error {
	trusted, err := l.trusted(ctx, p)
	if err != nil {
		return err
	}
	lost := pki.Encode(pki.Find(pki.Encode(trusted), p.status.Authority))
	if len(lost) == 0 {
		return nil
	}
	if len(trusted) >= mostTrusted {
		return &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("the certificate authority of %s is lost, and %d of before are still trusted, which is the limit: no rotation begins. Put Secret %s back from a backup; or %s",
			p.spec, len(trusted)-1, p.authority, recreateAdvice(p))}
	}
	data := map[string][]byte{}
	if secret != nil {
		data = maps.Clone(secret.Data)
	}
	if !bytes.Equal(data[api.SecretCert], lost) {
		data[api.SecretCert], data[api.SecretKey] = lost, []byte{}
	}
	former := slices.DeleteFunc(trusted, func(c *x509.Certificate) bool { return bytes.Equal(pki.Encode([]*x509.Certificate{c}), lost) })
	return l.begin(ctx, p, secret, data, former, "of "+p.spec+", which is lost")
}

// trusted are the certificates of the authorities that members may trust, as far as the status
// names them and the Secrets with what they have issued have them.
func (l *inspection) trusted(ctx context.Context, p plane) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for _, s := range p.secrets {
		secret, err := l.ours(ctx, s.name, l.issuedBy(p.known(), s), l.replaceable(s.name))
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		for _, c := range pki.Find(secret.Data[api.SecretCA], p.known()...) {
			if !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// reread takes from what was issued which authorities were there before, where the Secret of the
// authority cannot tell. It reports whether all are known that members may trust.
func (l *inspection) reread(ctx context.Context, p plane, h *authoritySecret) (bool, error) {
	trusted, err := l.trusted(ctx, p)
	if err != nil {
		return false, err
	}
	h.trust(trusted)
	known := pki.Fingerprints(h.issues.PEM())
	if slices.ContainsFunc(p.status.Trusts, func(one string) bool { return !slices.Contains(known, one) }) {
		return false, nil
	}
	l.warn(api.ReasonCertificates, fmt.Sprintf("Secret %[1]s (%[2]s): %[3]v. What %[4]s is to have is known from the Secrets with certificates, and the rotation goes on. "+
		`To write it again, run: kubectl patch secret %[1]s --namespace=%[5]s --type=merge --patch="{\"data\":{\"%[4]s\":\"$(kubectl get secret %[6]s --namespace=%[5]s --output=jsonpath='{.data.ca\.crt}')\"}}"`,
		p.authority, p.spec, h.unreadable, api.SecretPreviousCert, l.c.Namespace, p.secrets[0].name))
	return true, nil
}
