//go:build env

package reconcile_test

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// The clients here embed nothing: a method that an interface gets later is missing here, and does
// not compile, in place of passing by the fault. Events are no effects: the operator sends them off
// and never learns what became of them.

// faulty is a client whose writes go through a fault, by whatever verb.
type faulty struct {
	real  client.Client
	fault *fault
}

var _ client.Client = (*faulty)(nil)

func (c *faulty) do(what string, call func(client.Client) error) error {
	return c.fault.do(what, func() error { return call(c.real) }, func(m mode) error { return refusedByKubernetes(c.real, m, call) })
}

func (c *faulty) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.do(signature(c.verb(ctx, o), o), func(to client.Client) error { return to.Apply(ctx, o, opts...) })
}

// verb of an apply: one that takes a Pod out of the Service for clients is drain, one that gives it
// back is admit.
func (c *faulty) verb(ctx context.Context, o runtime.ApplyConfiguration) string {
	want, ok := o.(*corev1ac.PodApplyConfiguration)
	live := &corev1.Pod{}
	if !ok || c.real.Get(ctx, client.ObjectKey{Namespace: *want.Namespace, Name: *want.Name}, live) != nil || want.Labels[api.LabelClients] == live.Labels[api.LabelClients] {
		return "apply"
	}
	return map[string]string{api.ClientsOut: "drain", api.ClientsIn: "admit"}[want.Labels[api.LabelClients]]
}

func (c *faulty) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.do(effectOn("create", o), func(to client.Client) error { return to.Create(ctx, o, opts...) })
}

func (c *faulty) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	verb := "delete"
	if len((&client.DeleteOptions{}).ApplyOptions(opts).DryRun) > 0 {
		verb = "try"
	}
	return c.do(effectOn(verb, o), func(to client.Client) error { return to.Delete(ctx, o, opts...) })
}

func (c *faulty) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.do(effectOn("update", o), func(to client.Client) error { return to.Update(ctx, o, opts...) })
}

func (c *faulty) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.do(effectOn("patch", o), func(to client.Client) error { return to.Patch(ctx, o, patch, opts...) })
}

func (c *faulty) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	return c.do(effectOn("deleteAllOf", o), func(to client.Client) error { return to.DeleteAllOf(ctx, o, opts...) })
}

func (c *faulty) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *faulty) SubResource(name string) client.SubResourceClient {
	return &faultySubResource{name: name, of: c}
}

func (c *faulty) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.real.Get(ctx, key, o, opts...)
}

func (c *faulty) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.real.List(ctx, list, opts...)
}

func (c *faulty) Scheme() *runtime.Scheme     { return c.real.Scheme() }
func (c *faulty) RESTMapper() meta.RESTMapper { return c.real.RESTMapper() }

func (c *faulty) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return c.real.GroupVersionKindFor(o)
}

func (c *faulty) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return c.real.IsObjectNamespaced(o)
}

// faultySubResource does the same for a subresource. An effect by Apply is named by the subresource
// alone, of old.
type faultySubResource struct {
	name string
	of   *faulty
}

func (c *faultySubResource) do(what string, call func(client.SubResourceClient) error) error {
	return c.of.do(what, func(to client.Client) error { return call(to.SubResource(c.name)) })
}

func (c *faultySubResource) Get(ctx context.Context, o, sub client.Object, opts ...client.SubResourceGetOption) error {
	return c.of.real.SubResource(c.name).Get(ctx, o, sub, opts...)
}

func (c *faultySubResource) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.do(signature(c.name, o), func(to client.SubResourceClient) error { return to.Apply(ctx, o, opts...) })
}

func (c *faultySubResource) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.do(effectOn(c.name+"-create", o), func(to client.SubResourceClient) error { return to.Create(ctx, o, sub, opts...) })
}

func (c *faultySubResource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.do(effectOn(c.name+"-update", o), func(to client.SubResourceClient) error { return to.Update(ctx, o, opts...) })
}

func (c *faultySubResource) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.do(effectOn(c.name+"-patch", o), func(to client.SubResourceClient) error { return to.Patch(ctx, o, patch, opts...) })
}

func effectOn(verb string, o client.Object) string { return verb + "." + kindOf(o) + "." + o.GetName() }

func signature(verb string, o runtime.ApplyConfiguration) string {
	named, ok := o.(interface {
		GetKind() *string
		GetName() *string
	})
	if !ok {
		return verb
	}
	return verb + "." + *named.GetKind() + "." + *named.GetName()
}

// faultyEtcd is a client of etcd whose changes go through a fault.
type faultyEtcd struct {
	real  membership.Client
	fault *fault
}

var _ membership.Client = (*faultyEtcd)(nil)

func (c *faultyEtcd) Status(ctx context.Context) (membership.Endpoint, error) {
	return c.real.Status(ctx)
}
func (c *faultyEtcd) Close() error { return c.real.Close() }
func (c *faultyEtcd) Lasts() bool  { return c.real.(membership.Lasting).Lasts() }

func (c *faultyEtcd) Hash(ctx context.Context, revision int64) (membership.Hash, error) {
	return c.real.Hash(ctx, revision)
}

func (c *faultyEtcd) Members(ctx context.Context) ([]membership.Member, error) {
	members, err := c.real.Members(ctx)
	c.fault.mu.Lock()
	defer c.fault.mu.Unlock()
	for _, m := range members {
		c.fault.names[m.ID] = host(m.PeerURLs[0])
	}
	return members, err
}

// host is the member's name in its peer URL: etcd knows its name only once it has started.
func host(peerURL string) string {
	_, address, _ := strings.Cut(peerURL, "://")
	name, _, _ := strings.Cut(address, ".")
	return name
}

func (c *faultyEtcd) do(ctx context.Context, what string, call func(context.Context, membership.Client) error) error {
	return c.fault.do(what, func() error { return call(ctx, c.real) }, func(m mode) error { return refusedByEtcd(ctx, m, call) })
}

func (c *faultyEtcd) member(ctx context.Context, verb string, id membership.ID, call func(context.Context, membership.Client) error) error {
	return c.do(ctx, verb+".Member."+c.fault.name(id), call)
}

func (c *faultyEtcd) AddLearner(ctx context.Context, peerURL string) error {
	return c.do(ctx, "AddLearner.Member."+host(peerURL), func(ctx context.Context, to membership.Client) error { return to.AddLearner(ctx, peerURL) })
}

func (c *faultyEtcd) Promote(ctx context.Context, id membership.ID) error {
	return c.member(ctx, "Promote", id, func(ctx context.Context, to membership.Client) error { return to.Promote(ctx, id) })
}

func (c *faultyEtcd) Remove(ctx context.Context, id membership.ID) error {
	return c.member(ctx, "Remove", id, func(ctx context.Context, to membership.Client) error { return to.Remove(ctx, id) })
}

func (c *faultyEtcd) MoveLeader(ctx context.Context, to membership.ID) error {
	return c.member(ctx, "MoveLeader", to, func(ctx context.Context, at membership.Client) error { return at.MoveLeader(ctx, to) })
}

func (c *faultyEtcd) Disarm(ctx context.Context, kind membership.AlarmKind, id membership.ID) error {
	return c.member(ctx, "Disarm", id, func(ctx context.Context, to membership.Client) error { return to.Disarm(ctx, kind, id) })
}

func (c *faultyEtcd) Downgrade(ctx context.Context, to membership.Version) error {
	return c.do(ctx, "Downgrade.Cluster."+to.String(), func(ctx context.Context, at membership.Client) error { return at.Downgrade(ctx, to) })
}

func (c *faultyEtcd) CancelDowngrade(ctx context.Context) error {
	return c.do(ctx, "CancelDowngrade.Cluster", func(ctx context.Context, to membership.Client) error { return to.CancelDowngrade(ctx) })
}
