package reconcile

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// The mode of the clients' port can be changed on a living cluster. It comes to each member as
// every change of the spec does (render.PartClientPort), and needs no state of its own: meanwhile
// each member is asked for what its own Pod serves, with the certificate that this takes. The
// Secrets of a former mode are kept as they are while a Pod has them. Those of mode Managed are
// renewed, and stay afterwards: the authority issues again if the mode comes back.

// clientPorts are what Pods serve at the clients' port, by the name of the operator's Secret.
type clientPorts map[string]api.ClientTLS

// String tells one set from another.
func (ps clientPorts) String() string { return strings.Join(slices.Sorted(maps.Keys(ps)), " ") }

// otherPorts are those of Pods that were made for another certificate of the operator than the spec
// names now.
func (r *Reconciler) otherPorts(ctx context.Context, c *api.EtcdCluster) (clientPorts, error) {
	pods, err := podsOf(ctx, cached{r.Client, c.Name}, c)
	if err != nil {
		return nil, err
	}
	others := clientPorts{}
	asked := c.ClientPort()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		port := render.ClientPortAsMade(c, pods[name])
		operator := c.OperatorSecretOf(port)
		if !port.ServesTLS() || operator == "" || asked.ServesTLS() && operator == c.OperatorSecretOf(asked) {
			continue
		}
		if _, known := others[operator]; !known {
			others[operator] = port
		}
	}
	return others, nil
}

// keepOthers reads the certificates for Pods of a former mode, and renews those that Quorate
// issues. What is wrong with them blocks nothing: no Pod is to be made with them by the spec. Where
// only the operator's Secret has another name, the former one serves until the new one is there.
// Its only error is a conflict.
func (l *inspection) keepOthers(ctx context.Context, others clientPorts) error {
	for _, operator := range slices.Sorted(maps.Keys(others)) {
		renamed := render.SameServerSecret(l.c, others[operator])
		if renamed && l.found.configs[l.c.OperatorSecret()] != nil {
			continue
		}
		config, err := l.formerConfig(ctx, operator, others[operator])
		switch {
		case err == nil:
			l.found.configs[operator] = config
		case apierrors.IsConflict(err):
			return err
		case !renamed: // else what is wrong with the new one is told
			l.found.unasked[operator] = &certificatesError{api.ReasonCertificates, fmt.Sprintf("members that serve clients by an earlier spec.tls.client cannot be asked, and so not be changed (%v): restore Secret %s as it was", err, operator)}
			l.lookBy(l.now.Add(unreadyLook))
		}
	}
	return nil
}

// formerConfig is how the operator connects to Pods of a former clients' port.
func (l *inspection) formerConfig(ctx context.Context, operator string, port api.ClientTLS) (*tls.Config, error) {
	of := *l
	of.c = render.WithClientPort(l.c, port)
	of.writes = of.writes && !namesIssued(l.c, of.c)
	read := of.keepManaged
	if port.Mode != api.TLSManaged {
		read = func(ctx context.Context) (*corev1.Secret, error) { return of.get(ctx, operator) }
	}
	secret, err := read(ctx)
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, fmt.Errorf("there is no Secret %s", operator)
	default:
		return pki.Config(secret.Data, files, l.now)
	}
}

// namesIssued reports whether the spec names a Secret of others that Quorate wrote when the
// clients' port was as in former. It is others' now.
func namesIssued(c, former *api.EtcdCluster) bool {
	issued := []string{former.ServerSecret(), former.OperatorSecret(), former.ApplicationSecret()}
	return c.ClientTLSMode() == api.TLSSecret && (slices.Contains(issued, c.ServerSecret()) || slices.Contains(issued, c.OperatorSecret()))
}

// keepManaged renews the certificates of the clients' port while Pods of mode Managed are left, and
// returns the Secret of the operator. The names in the members' certificate stay: what the spec
// said of them is gone. A rotation waits until the mode is Managed again.
func (l *inspection) keepManaged(ctx context.Context) (*corev1.Secret, error) {
	p := l.clientPlane()
	h, lost, err := l.authority(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, s := range p.secrets {
		if lost != "" || h.expired { // nothing can be issued
			break
		}
		if err := l.keepHosts(ctx, s); err != nil {
			return nil, err
		}
		if _, err := l.issue(ctx, h.issues, p, s); err != nil {
			return nil, err
		}
	}
	return l.operators(ctx, p)
}

// keepHosts has a certificate of members reissued for the names that it has.
func (l *inspection) keepHosts(ctx context.Context, s issuedSecret) error {
	if s.name != l.c.ServerSecret() {
		return nil
	}
	secret, err := l.get(ctx, s.name)
	if err != nil || secret == nil {
		return err
	}
	if hosts := pki.Hosts(secret.Data[api.SecretCert]); len(hosts) > 0 {
		s.certificates[0].use.Hosts = hosts
	}
	return nil
}

// dial returns the connection that is kept to a member, or connects to it as its Pod serves
// clients: with the operator's certificate where that is with TLS.
func (r *Reconciler) dial(c *api.EtcdCluster, pod *corev1.Pod) (*connection, error) {
	config, err := r.configFor(c, pod)
	if err != nil {
		return nil, err
	}
	to, now := destination{pod: pod.UID, ip: pod.Status.PodIP, config: config}, time.Now()
	if kept := r.connections.take(client.ObjectKeyFromObject(c), pod.Name, to, now); kept != nil {
		return kept, nil
	}
	var etcd membership.Client
	if to.config == nil {
		etcd, err = r.Dial(to.ip, api.PortClient)
	} else {
		config := to.config.Clone()
		config.ServerName = c.MemberHost(pod.Name)
		etcd, err = r.DialTLS(to.ip, api.PortClient, config)
	}
	if err != nil {
		return nil, err
	}
	return connected(etcd, to, now), nil
}

// configFor is how the operator connects to a member whose Pod serves clients with TLS; nil: it
// serves without.
func (r *Reconciler) configFor(c *api.EtcdCluster, pod *corev1.Pod) (*tls.Config, error) {
	port := render.ClientPort(c, pod)
	if !port.ServesTLS() {
		return nil, nil
	}
	configs := r.keys.of(c).configs
	config := cmp.Or(configs[c.OperatorSecretOf(port)], configs[c.OperatorSecretOf(render.ClientPortAsMade(c, pod))])
	if config == nil {
		return nil, fmt.Errorf("dial etcd %s: there is no client certificate", pod.Status.PodIP)
	}
	return config, nil
}

// startsServed reports whether the step starts members again with a clients' port with which they
// have served, and what is wrong with certificates is about another one, to which they are to be
// changed: a quorum is not lost node by node for that.
func startsServed(c *api.EtcdCluster, seen observed, step membership.Step) bool {
	if !seen.credentials.onlyClients || step.Action != membership.Start && step.Action != membership.PutBack {
		return false
	}
	return !slices.ContainsFunc(step.Members, func(name string) bool {
		of, ok := seen.made(c, name)
		if step.Action == membership.PutBack {
			of, ok = asServed(c, said(seen.claims[name]))
		}
		return !ok || !slices.Contains(render.Differing(of, c), render.PartClientPort)
	})
}

// foretold is the step with what clients find while members are changed to another clients' port.
func foretold(c *api.EtcdCluster, seen observed, step membership.Step) membership.Step {
	if step.Reason == membership.Changing {
		step.Message += clientGap(c, seen)
	}
	return step
}

// clientGap says what clients find of that; empty where they notice nothing.
func clientGap(c *api.EtcdCluster, seen observed) string {
	const how = " (docs/tls.md#changing-the-mode)"
	wants := c.ClientPort()
	for _, name := range slices.Sorted(maps.Keys(seen.pods)) {
		has := render.ClientPort(c, seen.pods[name])
		plain, encrypted := has.ServesPlaintext() && !wants.ServesPlaintext(), has.ServesTLS() && !wants.ServesTLS()
		switch {
		case seen.pods[name].Annotations[api.AnnotationProvisions] != "":
		case plain && !has.ServesTLS():
			return "; each changed member refuses clients without TLS, and each other one still refuses those with TLS. To change without a gap, set spec.tls.client.plaintext to Allowed first" + how
		case encrypted && !has.ServesPlaintext():
			return "; each changed member refuses clients with TLS, and each other one still refuses those without TLS. To change without a gap, revert spec.tls.client.mode, and set spec.tls.client.plaintext to Allowed first" + how
		case plain:
			return "; each changed member refuses clients without TLS"
		case encrypted:
			return "; each changed member refuses clients with TLS"
		case has.ServesTLS() && wants.ServesTLS() && c.ServerSecretOf(has) != c.ServerSecretOf(wants):
			return "; each changed member presents the certificate in Secret " + c.ServerSecretOf(wants) + ", and accepts clients by the authorities in " + api.SecretCA + " there" + how
		}
	}
	return ""
}

// clientURL is where clients reach the cluster: with the scheme that all Pods serve, and with that
// of the spec while they serve different ones.
func clientURL(c *api.EtcdCluster, seen observed) string {
	encrypted, plain := true, true
	for _, pod := range seen.pods {
		if pod.Annotations[api.AnnotationProvisions] == "" {
			port := render.ClientPort(c, pod)
			encrypted, plain = encrypted && port.ServesTLS(), plain && port.ServesPlaintext()
		}
	}
	if encrypted == plain { // both, as with plaintext Allowed or without a Pod, or none of them
		return c.ClientServiceURL(c.ClientTLS())
	}
	return c.ClientServiceURL(encrypted)
}
