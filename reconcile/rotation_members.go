package reconcile

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// podsOf returns the Pods of the cluster that run etcd or are about to, by name.
func podsOf(ctx context.Context, reader client.Reader, c *api.EtcdCluster) (map[string]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(render.Selector(c))); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for n := range list.Items {
		pod := &list.Items[n]
		if foreign, _ := belongs(c, pod); !foreign && pod.Annotations[api.AnnotationProvisions] == "" { // a Pod that only provisions its volume runs no etcd
			pods[pod.Name] = pod
		}
	}
	return pods, nil
}

// members are all members that have a Pod or are in the status, with the authorities that they
// trust. They are asked for their certificate once all Pods were created with the current ca.crt.
func (l *inspection) members(ctx context.Context, p plane, h *authoritySecret, pods map[string]*corev1.Pod, secretsWritten bool) []memberTrust {
	var all []memberTrust
	ask := secretsWritten && h.step != ""
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		m := memberTrust{Name: name, Exists: true, Trusts: l.trusts(p, h, pods[name])}
		all, ask = append(all, m), ask && m.Trusts
	}
	for _, m := range l.c.Status.Members {
		if pods[m.Name] == nil && size(l.c) > 0 {
			all, ask = append(all, memberTrust{Name: m.Name}), false
		}
	}
	if ask {
		l.ask(ctx, p, h, pods, all)
	}
	return all
}

// unchanged reports whether the API server has exactly the Pods that were read from the cache.
func (l *inspection) unchanged(ctx context.Context, looked map[string]*corev1.Pod) (bool, error) {
	live, err := podsOf(ctx, l.r.Reader, l.c)
	return maps.EqualFunc(live, looked, func(a, b *corev1.Pod) bool { return a.UID == b.UID }), err
}

// trusts reports whether a Pod was created with the ca.crt that the Secrets hold now. It was not
// while the status has other authorities than the Secrets, nor where it is of another mode.
func (l *inspection) trusts(p plane, h *authoritySecret, pod *corev1.Pod) bool {
	if !p.mountedBy(pod) {
		return false
	}
	if h.rotated && !slices.Equal(p.status.Trusts, pki.Fingerprints(h.issues.PEM())) {
		return false
	}
	return render.Trusts(l.c, pod, p.part)
}

// ask connects to each member, with a client certificate of the new authority. In step Reissue the
// member's own certificate must be of the new authority as well.
func (l *inspection) ask(ctx context.Context, p plane, h *authoritySecret, pods map[string]*corev1.Pod, all []memberTrust) {
	by, shows := h.next, (*pki.Authority)(nil)
	if h.step == api.RotationReissue {
		by, shows = h.issues, h.issues
	}
	if by == nil {
		return
	}
	prove := l.r.handshaker
	if prove == nil {
		prove = handshake
	}
	defer l.r.workers.releaseIfSlow(l.c.Namespace)()
	config, err := by.Client(api.Manager, h.issues.PEM(), l.now)
	var handshakes taskGroup
	for n := range all {
		m := &all[n]
		if err != nil {
			m.Problem = "cannot be asked: " + err.Error()
			continue
		}
		handshakes.do(func() {
			config := config.Clone()
			config.ServerName = l.c.MemberHost(m.Name)
			shown, err := prove(ctx, pods[m.Name].Status.PodIP, p.port, config)
			m.Problem = unready(p, shows, shown, err)
		})
	}
	handshakes.wait()
}

// unready says why a member is not ready for the next step; empty: it is ready.
func unready(p plane, shows *pki.Authority, shown *x509.Certificate, err error) string {
	switch {
	case shown != nil && shows != nil && !shows.Issued(shown):
		return fmt.Sprintf("presents a certificate of the former authority at port %d: its kubelet has yet to write the new one, which takes a minute or two", p.port)
	case shown != nil && err != nil:
		return fmt.Sprintf("does not accept a certificate of the new authority at port %d (%v)", p.port, err)
	case err != nil:
		return fmt.Sprintf("does not answer at port %d, which must be open from the operator to the members (%v)", p.port, err)
	default:
		return ""
	}
}
