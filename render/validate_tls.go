package render

import (
	"net/netip"
	"regexp"
	"slices"
	"time"

	api "quorate.dev/api/v1alpha1"
)

var altName = regexp.MustCompile(`^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

var tlsModes = []api.TLSMode{api.TLSManaged, api.TLSSecret, api.TLSDisabled}

// tlsProblems are those of spec.tls, in the words of the schema.
func tlsProblems(t *api.TLS) []string {
	if t == nil {
		return nil
	}
	return slices.Concat(clientProblems(t.Client), peerProblems(t.Peer))
}

func clientProblems(c *api.ClientTLS) []string {
	if c == nil {
		return nil
	}
	var problems []string
	own := c.Mode == api.TLSSecret
	if !slices.Contains(tlsModes, c.Mode) {
		problems = append(problems, "spec.tls.client.mode must be Managed, Secret or Disabled")
	}
	if own != (c.SecretRef != nil) || own != (c.OperatorSecretRef != nil) {
		problems = append(problems, "spec.tls.client.secretRef and spec.tls.client.operatorSecretRef are for mode Secret, which needs both: the members' certificate, and the client certificate with which Quorate and its backups connect")
	}
	if c.Mode != api.TLSManaged && len(c.AltNames) > 0 {
		problems = append(problems, "spec.tls.client.altNames go into certificates that Quorate issues (mode Managed): with mode Secret put them into your own certificate")
	}
	if c.Mode != api.TLSManaged && (c.RotateAuthority != "" || c.RotationWait != nil) {
		problems = append(problems, "spec.tls.client.rotateAuthority and spec.tls.client.rotationWait are for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)")
	}
	if c.RotationWait != nil && !validRotationWait(string(*c.RotationWait)) {
		problems = append(problems, "spec.tls.client.rotationWait must be whole seconds, minutes or hours from 0s to 8760h, for example 168h")
	}
	if slices.ContainsFunc(c.AltNames, malformedName) {
		problems = append(problems, "spec.tls.client.altNames: each is a DNS name in lower case, such as etcd.example.com or *.etcd.example.com, or an IP address, without port and scheme")
	}
	return problems
}

var rotationWaitForm = regexp.MustCompile(`^[0-9]{1,5}(s|m|h)$`)

// validRotationWait reports whether a wait is in whole units, and a year at most.
func validRotationWait(wait string) bool {
	span, err := time.ParseDuration(wait)
	return err == nil && rotationWaitForm.MatchString(wait) && span <= 365*24*time.Hour
}

func malformedName(name api.AltName) bool {
	_, err := netip.ParseAddr(string(name))
	return err != nil && !altName.MatchString(string(name)) || len(name) > 253
}

func peerProblems(p *api.PeerTLS) []string {
	if p == nil {
		return nil
	}
	var problems []string
	if !slices.Contains(tlsModes, p.Mode) {
		problems = append(problems, "spec.tls.peer.mode must be Managed, Secret or Disabled")
	}
	if p.Mode != api.TLSManaged && p.RotateAuthority != "" {
		problems = append(problems, "spec.tls.peer.rotateAuthority is for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)")
	}
	if (p.Mode == api.TLSSecret) != (p.SecretRef != nil) {
		problems = append(problems, "spec.tls.peer.secretRef is for mode Secret, which needs it: the certificate with which members know each other")
	}
	return problems
}
