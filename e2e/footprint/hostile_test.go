//go:build e2e

package footprint

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

var hostileFor = flag.Duration("for", time.Minute, "TestHostileBesideHealthy: how long healthy clusters lose Pods beside hostile ones")

// Bounds of what hostile clusters may cost.
const (
	mostPeak = 512 // MiB of the operator: its limit (templates/install/base/deployment.yaml)
	// comesBack is how long a tenant's cluster takes to be Ready after its image is etcd again.
	comesBack = time.Minute
)

// TestHostileBesideHealthy: of the clusters, some are on lost nodes, and some are of tenants with
// images that answer anything, own annotations on claims, and own Pods with the labels of their
// cluster. The operator recreates a deleted Pod of a healthy cluster within two seconds, takes no
// more memory than its limit, and does not end. When the tenants stop, their clusters come back.
func TestHostileBesideHealthy(t *testing.T) {
	sick, hostile := *of*15/100, max(1, *of*5/100)
	c, seen, access := apiServer(t)
	startStandIns(t, access, *of)
	probes := freeAddress(t)
	operator := startOperator(t, build(t), access, "--health-probe-bind-address="+probes)
	others := namesOf(*of - hostile)
	all := tenantsOf(t, c, hostile)
	var names []string
	for _, tenant := range all {
		names = append(names, tenant.name)
	}
	at(t, others, func(ctx context.Context, name string) error { return c.Create(ctx, newCluster(name)) })
	seen.until(t, patience(*of, 0), "Ready", append(names, others...), func(k *known) bool { return k.ready })
	loseNodes(t, c, seen, others[:sick])

	for n := range all {
		all[n].begin(t, c)
	}
	quiet, begun := operator.cpu(t), time.Now()
	var took reactions
	strikes := time.NewTicker(time.Second) // what they write is stored for some minutes
	defer strikes.Stop()
	for n, struck := 0, 0; n < 50 || time.Since(begun) < *hostileFor; n++ {
		select {
		case <-strikes.C:
			all[struck%hostile].strike(t, c, struck/hostile)
			struck++
		default:
		}
		took = append(took, react(t, c, seen, others[sick+n%(len(others)-sick)]))
		alive(t, probes)
	}
	share := 100 * (operator.cpu(t) - quiet).Seconds() / time.Since(begun).Seconds()
	for n := range all {
		all[n].end(t, c)
	}
	took.judge(t, "%d clusters of which %d answer nothing and %d are hostile, for %s", *of, sick, hostile, time.Since(begun).Round(time.Second))
	peak := operator.peak(t)
	t.Logf("the operator took %.0f MiB of memory at most, and %.0f %% of a core", peak, share)
	if peak > mostPeak {
		t.Errorf("want %d MiB at most", mostPeak)
	}
	seen.until(t, comesBack, "Ready again after the tenants have stopped", names, func(k *known) bool { return k.ready })
	alive(t, probes)
}

// tenant has one cluster, in a namespace of its own.
type tenant struct {
	name   string
	before map[string]map[string]*string // the annotations of claims that it changes, by claim
}

// tenantsOf creates the clusters of so many tenants.
func tenantsOf(t *testing.T, c client.Client, count int) []tenant {
	t.Helper()
	all := make([]tenant, count)
	for n := range all {
		all[n].name = fmt.Sprintf("%s%d", tenants, n)
		cluster := newCluster(all[n].name)
		cluster.Namespace = all[n].name
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: all[n].name}}
		if err := errors.Join(c.Create(t.Context(), namespace), c.Create(t.Context(), cluster)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// begin has the members of the tenant's cluster answer anything.
func (a *tenant) begin(t *testing.T, c client.Client) {
	t.Helper()
	a.before = map[string]map[string]*string{}
	for n := range members {
		name := fmt.Sprintf("%s-%d", a.name, n)
		claim := claimOf(a.name, name)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		was := map[string]*string{}
		for _, key := range []string{api.AnnotationServed, api.AnnotationNextWith, api.AnnotationReplays, api.AnnotationVersion} {
			if value, has := claim.Annotations[key]; has {
				was[key] = &value
			} else {
				was[key] = nil
			}
		}
		a.before[name] = was
		if err := annotate(t.Context(), c, podOf(a.name, name), map[string]*string{hostileImage: new("true")}); err != nil {
			t.Fatal(err)
		}
	}
}

// strike has the tenant write other annotations on a claim, and create one more Pod with the labels
// of its cluster.
func (a *tenant) strike(t *testing.T, c client.Client, n int) {
	t.Helper()
	const kib = 1 << 10
	said := []string{
		`{"version":"3.6.16","resources":{"limits":{"memory":"1e-100000000"}}}`,
		`{"version":"3.6.16","options":{"quotaBackendSize":"1e-100000000"}}`,
		strings.Repeat("x", 100*kib),
		`{"version":"3.6.16","resources":{"requests":{"cpu":"1e999999999"}}}`,
		`{"version":"3.6.16","scheduling":` + strings.Repeat("[", 50*kib) + `}`,
		`{"version":"` + strings.Repeat("9", 60*kib) + `"}`,
	}
	version := strings.Repeat("3.", 20*kib)
	written := map[string]*string{
		api.AnnotationServed: &said[n%len(said)], api.AnnotationNextWith: &said[(n+1)%len(said)],
		api.AnnotationReplays: &version, api.AnnotationVersion: &version,
	}
	if err := annotate(t.Context(), c, claimOf(a.name, fmt.Sprintf("%s-%d", a.name, n%members)), written); err != nil {
		t.Fatal(err)
	}
	odd := []string{"x", "007", "-1", "1000000", "99999999999999999999"}
	name := fmt.Sprintf("%s-%d", a.name, 100+n%(2*mostOdd)) // more than the operator asks in one look
	if n%2 == 0 {
		name = a.name + "-" + odd[n/2%len(odd)]
	}
	pod := podOf(a.name, name)
	pod.Labels = map[string]string{api.LabelCluster: a.name}
	pod.Annotations = map[string]string{
		api.AnnotationInitialCluster: strings.Repeat(name+"=http://", 5*kib), api.AnnotationPrevious: strings.Repeat("y ", 10*kib), api.AnnotationApplied: version,
	}
	pod.Spec.Containers = []corev1.Container{{Name: render.Container, Image: "image", Args: []string{strings.Repeat("z", 50*kib)}}}
	if err := c.Create(t.Context(), pod); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// mostOdd is how many Pods of its own a tenant has at most, beside those that have no ordinal.
const mostOdd = 40

// end has the tenant stop: its image is etcd again, its own Pods are gone, and its claims say what
// they said.
func (a *tenant) end(t *testing.T, c client.Client) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(a.name)); err != nil {
		t.Fatal(err)
	}
	for n := range pods.Items {
		pod := &pods.Items[n]
		err := annotate(t.Context(), c, pod, map[string]*string{hostileImage: new("false")})
		if err == nil && a.before[pod.Name] == nil {
			err = c.Delete(t.Context(), pod, client.GracePeriodSeconds(0))
		}
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for claim, was := range a.before {
		if err := annotate(t.Context(), c, claimOf(a.name, claim), was); err != nil {
			t.Fatal(err)
		}
	}
}

func claimOf(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// freeAddress is one at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// alive asks the operator as a kubelet does, and fails where a kubelet would restart it after some
// more such answers.
func alive(t *testing.T, probes string) {
	t.Helper()
	const timeout = 10 * time.Second // a kubelet asks three times, ten seconds apart
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+probes+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("the operator is not alive: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the operator is not alive: %s", response.Status)
	}
}
