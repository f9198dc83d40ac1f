package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// configuration is an apply-configuration of a whole object; all generated ones are.
type configuration interface {
	runtime.ApplyConfiguration
	GetAPIVersion() *string
	GetKind() *string
	GetName() *string
	GetNamespace() *string
}

// apply makes an object of the cluster what the configuration says, and reports whether it had to
// be created. An object that is already so costs no request. One that has another owner is left
// alone.
func (r *Reconciler) apply(ctx context.Context, c *api.EtcdCluster, desired runtime.ApplyConfiguration) (created bool, err error) {
	want, ok := desired.(configuration)
	if !ok {
		return false, fmt.Errorf("apply %T: it is no whole object", desired)
	}
	kind, name := *want.GetKind(), *want.GetName()
	live, err := existing(ctx, want, r.Client, r.Reader)
	if err != nil {
		return false, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	if live != nil {
		if err := applicable(c, live, kind); err != nil {
			return false, err
		}
		if r.applied.same(live, want) {
			return false, nil
		}
	}
	intent := hash(want)
	if err := r.Client.Apply(ctx, want, client.FieldOwner(api.Manager), client.ForceOwnership); err != nil {
		return false, fmt.Errorf("apply %s %s: %w", kind, name, err)
	}
	r.applied.remember(want, intent)
	return live == nil, nil
}

// applicable is why an object that exists cannot be made what is wanted: it has another owner, or
// is being deleted.
func applicable(c *api.EtcdCluster, live client.Object, kind string) error {
	foreign, terminating := belongs(c, live)
	stray := metav1.GetControllerOf(live) == nil && live.GetLabels()[api.LabelCluster] != c.Name && !holdsDataOf(c, live)
	switch {
	case foreign || stray:
		return &foreignError{kind: kind, name: live.GetName(), whose: whose(live)}
	case terminating:
		return &terminatingError{kind: kind, name: live.GetName()}
	default:
		return nil
	}
}

// existing is the object as the first reader has it, or, where that has none, as the next one has
// it; nil where there is none. A cache holds only what carries our label, so an object of another
// owner shows only on the second look.
func existing(ctx context.Context, want configuration, readers ...client.Reader) (client.Object, error) {
	kind := schema.FromAPIVersionAndKind(*want.GetAPIVersion(), *want.GetKind())
	made, err := clientgoscheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", kind)
	}
	key := client.ObjectKey{Namespace: *want.GetNamespace(), Name: *want.GetName()}
	for _, reader := range readers {
		err = reader.Get(ctx, key, object)
		if err == nil {
			return object, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, nil
}

func whose(o client.Object) string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.Kind + " " + owner.Name
	}
	return "another application (it has no label " + api.LabelCluster + " and no owner)"
}

// each does the same for all items at once, and returns the errors in the order of the items.
func each[T any](items []T, do func(item T) error) error {
	errs := make([]error, len(items))
	var all taskGroup
	for n, item := range items {
		all.do(func() { errs[n] = do(item) })
	}
	all.wait()
	return errors.Join(errs...)
}

// applied remembers what was applied, so that a cluster at rest costs no writes. An entry holds
// while the live object is as the apply left it: what others change is applied again. It is no more
// than a memory: without it the same requests are made, and change nothing.
type applied struct{ cache *utilcache.LRUExpireCache }

const (
	mostApplied   = 50_000 // objects; 12 for a cluster of three
	appliedExpiry = 10 * time.Hour
)

func newApplied() applied { return applied{cache: utilcache.NewLRUExpireCache(mostApplied)} }

type appliedEntry struct {
	live   string
	intent [sha256.Size]byte
}

func (a applied) same(live client.Object, want configuration) bool {
	entry, ok := a.cache.Get(key(want))
	return ok && entry == appliedEntry{fingerprint(live), hash(want)}
}

// remember what was applied; an apply leaves the server's answer in the configuration.
func (a applied) remember(answer configuration, intent [sha256.Size]byte) {
	live := &metav1.PartialObjectMetadata{}
	raw, err := json.Marshal(answer)
	if err != nil || json.Unmarshal(raw, live) != nil {
		return // it is applied once more, which changes nothing
	}
	a.cache.Add(key(answer), appliedEntry{fingerprint(live), intent}, appliedExpiry)
}

// fingerprint changes with everything of an object that an apply could change, and where the API
// server counts generations not with its status: that of a disruption budget is written by its
// controller whenever a Pod comes or goes.
func fingerprint(o client.Object) string {
	if o.GetGeneration() == 0 {
		return o.GetResourceVersion()
	}
	raw, err := json.Marshal([]any{o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences()})
	if err != nil {
		return o.GetResourceVersion()
	}
	return string(raw)
}

func key(o configuration) string {
	return *o.GetKind() + "/" + *o.GetNamespace() + "/" + *o.GetName()
}

// hash of what is wanted of an object. Which one it is to be applied to, as a Service for clients
// says, is no part of that.
func hash(o configuration) [sha256.Size]byte {
	if service, ok := o.(*corev1ac.ServiceApplyConfiguration); ok && service.ObjectMetaApplyConfiguration != nil {
		bare, metadata := *service, *service.ObjectMetaApplyConfiguration
		metadata.UID, metadata.ResourceVersion = nil, nil
		bare.ObjectMetaApplyConfiguration = &metadata
		o = &bare
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return [sha256.Size]byte{} // equal to no other hash that matters: generated types always marshal
	}
	return sha256.Sum256(raw)
}
