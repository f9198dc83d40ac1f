package reconcile

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// Auth connects to a member of the cluster, the leader where it can be asked, for its users and
// roles. Where the cluster has TLS for clients, so has the connection.
func (r *Reconciler) Auth(ctx context.Context, c *api.EtcdCluster) (membership.Auth, error) {
	all, err := podsOf(ctx, cached{r.Client, c.Name}, c)
	if err != nil {
		return nil, err
	}
	err = errors.New("no member can be asked")
	for _, pod := range askable(c, all) {
		config, noConfig := r.configFor(c, pod)
		if noConfig != nil || config == nil && c.ClientTLS() {
			err = cmp.Or(noConfig, fmt.Errorf("%s serves without TLS", pod.Name))
			continue
		}
		return r.dialAuth(c, pod, config)
	}
	return nil, err
}

func (r *Reconciler) dialAuth(c *api.EtcdCluster, pod *corev1.Pod, config *tls.Config) (membership.Auth, error) {
	if config != nil {
		config = config.Clone()
		config.ServerName = c.MemberHost(pod.Name)
	}
	return r.DialAuth(pod.Status.PodIP, api.PortClient, config)
}

// askable are the Pods whose members may be asked: the leader first, and then those that are ready.
func askable(c *api.EtcdCluster, all map[string]*corev1.Pod) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if listens(all[name]) {
			pods = append(pods, all[name])
		}
	}
	rank := func(pod *corev1.Pod) int {
		switch {
		case pod.Name == c.Status.Leader:
			return 0
		case isReady(pod):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	return pods[:min(len(pods), mostTried)]
}

// mostTried is how many members are asked at most, where one after the other does not answer.
const mostTried = 3

// mostPassword is the longest password that etcd takes: bcrypt's own limit.
const mostPassword = 72

// ReadPassword reads the password in a Secret, and which one that is. wrong is why it cannot be
// used.
func ReadPassword(ctx context.Context, reader client.Reader, namespace, name string) (password, version, wrong string, _ error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", "", fmt.Sprintf("Secret %s does not exist: create it with the key %s", name, api.SecretPassword), nil
	case apierrors.IsForbidden(err):
		return "", "", fmt.Sprintf("the operator may not read Secret %s: give it the right to get Secrets in this namespace (docs/tls.md#rights)", name), nil
	case err != nil:
		return "", "", "", fmt.Errorf("get Secret %s: %w", name, err)
	}
	password = string(secret.Data[api.SecretPassword])
	switch {
	case password == "":
		return "", "", fmt.Sprintf("Secret %s has no key %s, or an empty one: etcd takes no empty password", name, api.SecretPassword), nil
	case len(password) > mostPassword:
		return "", "", fmt.Sprintf("the key %s of Secret %s has %d bytes, and etcd takes %d at most", api.SecretPassword, name, len(password), mostPassword), nil
	case strings.HasSuffix(password, "\n"):
		return "", "", fmt.Sprintf("the key %s of Secret %s ends with a line break, which clients would have to send as well: write it without one (printf instead of echo)", api.SecretPassword, name), nil
	}
	return password, string(secret.UID) + "/" + secret.ResourceVersion, "", nil
}
