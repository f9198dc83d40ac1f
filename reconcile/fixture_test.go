package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/index"
	"quorate.dev/render"
)

// These tests need no API server: they are for what is computed, and for the errors that a real one
// gives too seldom. What server-side apply really does is tested with the tag env.

// newCluster is an EtcdCluster called db, of three members, without TLS.
func newCluster() *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "cluster", Generation: 7, ResourceVersion: "1"},
		Spec: api.EtcdClusterSpec{
			Replicas: new(int32(3)), Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")},
			TLS: &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}},
		},
		Status: api.EtcdClusterStatus{TLS: plainText()},
	}
}

func newClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: child(name, "claim")}
}

func newPod(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: child(name, "pod")} }

// fenced are the annotations of a Pod that must find its data when it starts, as those of a formed
// cluster must.
func fenced(c *api.EtcdCluster, name string) map[string]string {
	return map[string]string{
		api.AnnotationInitialCluster: render.Resume(c, name), api.AnnotationInitialClusterState: render.StateExisting,
	}
}

func child(name, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID(kind + "-of-" + name), ResourceVersion: "5",
		Labels: map[string]string{api.LabelCluster: "db"}, Annotations: map[string]string{},
	}
}

// owned gives an object a controller.
func owned[T client.Object](o T, apiVersion, kind, name, uid string) T {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}})
	return o
}

// ownedBy the cluster of newCluster, or an earlier one of its name.
func ownedBy[T client.Object](uid string, o T) T {
	return owned(o, api.SchemeGroupVersion.String(), "EtcdCluster", "db", uid)
}

// healthy are the facts of a cluster of three in which all is well. db-1 leads.
func healthy() observed {
	seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	seen.ClusterID, seen.Reach, seen.Remembered = 0xc0, membership.ReachQuorum, true
	seen.Fresh, seen.generation = fresh(3), 7
	for n, name := range []string{"db-0", "db-1", "db-2"} {
		id := membership.ID(0xa0 + n)
		seen.pods[name], seen.claims[name] = newPod(name), newClaim(name)
		seen.Members = append(seen.Members, membership.Member{
			ID: id, Name: name, PeerURLs: []string{"http://" + name + ".db.ns.svc:2380"},
		})
		seen.Instances = append(seen.Instances, membership.Instance{
			Name: name, Ordinal: n, ID: id,
			Volume: membership.Volume{
				UID: "claim-of-" + name, ClusterID: 0xc0, MemberID: id,
				First: membership.First{Token: "cluster", Size: 3}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
			},
			Pod: membership.Pod{
				UID: "pod-of-" + name, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Ready: true,
			},
			Endpoint: membership.Endpoint{
				ClusterID: 0xc0, MemberID: id, Leader: 0xa1, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, DBSize: 20 << 10,
			},
		})
	}
	return seen
}

// fresh are the names of members to come, from that ordinal on.
func fresh(next int) []string {
	names := make([]string, mostMembers)
	for n := range names {
		names[n] = newCluster().MemberName(next + n)
	}
	return names
}

// write is a write to the API server, with the conditions that it was made under. To try is to
// write without any effect (dry run).
type write struct {
	Verb, Kind, Name     string
	UID, ResourceVersion string
}

// stub is a reconciler over an API server that has some objects and takes every write, or refuses
// it, and never changes.
type stub struct {
	*Reconciler
	mu      sync.Mutex
	writes  []write
	marks   map[string]map[string]string // the annotations that were applied, by kind and name, without those for Argo CD
	labels  map[string]map[string]string // that were applied, by kind and name
	specs   map[string]corev1.PodSpec    // what was applied of Pods, by verb or subresource and name
	patches map[string]string            // by kind and name
	secrets map[string]map[string][]byte // what was applied, by name
	graces  map[string]*int64            // with which Pods were deleted, by name; nil is their own
	status  []api.EtcdClusterStatus      // what was applied, in order
	// selectors that were applied, by the name of the Service
	selectors map[string]map[string]string
	budgets   []int32 // how many members the disruption budget was to keep, in order
	events    *events.FakeRecorder
}

func newStub(t *testing.T, refuse func(write) error, objects ...client.Object) *stub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stub{secrets: map[string]map[string][]byte{}, patches: map[string]string{}, marks: map[string]map[string]string{}, labels: map[string]map[string]string{}, specs: map[string]corev1.PodSpec{}, graces: map[string]*int64{}, selectors: map[string]map[string]string{}, events: events.NewFakeRecorder(100)}
	take := func(w write) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if refuse != nil {
			if err := refuse(w); err != nil {
				return err
			}
		}
		if w.Verb != "try" {
			s.writes = append(s.writes, w)
		}
		return nil
	}
	// The fake writes into what it is given, and rows that run beside each other may share that.
	own := make([]client.Object, len(objects))
	for n, o := range objects {
		own[n], _ = o.DeepCopyObject().(client.Object) // as it was
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for o, by := range index.Kinds() {
		builder.WithIndex(o, index.OfCluster, by)
	}
	c := builder.WithReturnManagedFields().WithObjects(own...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			meta, err := decode(o)
			if err != nil {
				return err
			}
			dryRun := (&client.ApplyOptions{}).ApplyOptions(opts).DryRun
			w := write{applyVerb(dryRun), meta.Kind, meta.Metadata.Name, meta.Metadata.UID, meta.Metadata.ResourceVersion}
			if err := take(w); err != nil || w.Verb == "try" {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(meta.Metadata.Annotations, "argocd.argoproj.io/sync-options")
			s.marks[meta.Kind+" "+meta.Metadata.Name] = meta.Metadata.Annotations
			s.labels[meta.Kind+" "+meta.Metadata.Name] = meta.Metadata.Labels
			switch meta.Kind {
			case "Pod":
				s.specs["apply "+meta.Metadata.Name] = meta.Spec
			case "Service":
				s.selectors[meta.Metadata.Name] = meta.Service.Selector
			case "Secret":
				s.secrets[meta.Metadata.Name] = meta.Data
			case "PodDisruptionBudget":
				s.budgets = append(s.budgets, meta.Budget.MinAvailable.IntVal)
			}
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
			kind, err := apiutil.GVKForObject(o, scheme)
			if err != nil {
				return err
			}
			if err := take(write{Verb: "patch", Kind: kind.Kind, Name: o.GetName(), UID: string(o.GetUID())}); err != nil {
				return err
			}
			raw, err := p.Data(o)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.patches[kind.Kind+" "+o.GetName()] = string(raw)
			return err
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			kind, err := apiutil.GVKForObject(o, scheme)
			if err != nil {
				return err
			}
			verb := "delete"
			if len(options.DryRun) > 0 {
				verb = "try"
			}
			if kind.Kind == "Pod" && verb == "delete" {
				s.mu.Lock()
				s.graces[o.GetName()] = options.GracePeriodSeconds
				s.mu.Unlock()
			}
			p := ptr.Deref(options.Preconditions, metav1.Preconditions{})
			return take(write{verb, kind.Kind, o.GetName(), string(ptr.Deref(p.UID, "")), ptr.Deref(p.ResourceVersion, "")})
		},
		SubResourceApply: func(_ context.Context, _ client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			meta, err := decode(o)
			if err != nil {
				return err
			}
			w := write{Verb: applyVerb((&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun), Kind: sub}
			if sub != "status" {
				w.Name, w.UID, w.ResourceVersion = meta.Metadata.Name, meta.Metadata.UID, meta.Metadata.ResourceVersion
			}
			if err := take(w); err != nil || w.Verb == "try" {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if sub == "status" {
				s.status = append(s.status, meta.Status)
			} else {
				s.specs[sub+" "+meta.Metadata.Name] = meta.Spec
			}
			return nil
		},
	}).Build()
	s.Reconciler = &Reconciler{Client: c, Reader: c, Recorder: s.events, applied: newApplied(), identity: "us"}
	return s
}

func applyVerb(dryRun []string) string {
	if len(dryRun) > 0 {
		return "try"
	}
	return "apply"
}

// decoded is what the tests want to know of what is applied.
type decoded struct {
	Kind     string
	Metadata struct {
		Name, UID, ResourceVersion string
		Labels, Annotations        map[string]string
	}
	Data    map[string][]byte // of a Secret
	Spec    corev1.PodSpec    // of a Pod
	Service corev1.ServiceSpec
	Budget  policyv1.PodDisruptionBudgetSpec
	Status  api.EtcdClusterStatus // of an EtcdCluster
}

func decode(o runtime.ApplyConfiguration) (d decoded, err error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return d, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return d, err
	}
	wanted := map[string]any{"kind": &d.Kind, "metadata": &d.Metadata}
	if string(fields["kind"]) == `"Pod"` {
		wanted["spec"] = &d.Spec
	}
	if string(fields["kind"]) == `"Service"` {
		wanted["spec"] = &d.Service
	}
	if string(fields["kind"]) == `"Secret"` {
		wanted["data"] = &d.Data
	}
	if string(fields["kind"]) == `"PodDisruptionBudget"` {
		wanted["spec"] = &d.Budget
	}
	if string(fields["kind"]) == `"EtcdCluster"` {
		wanted["status"] = &d.Status
	}
	for name, into := range wanted {
		if fields[name] == nil {
			continue
		}
		if err := json.Unmarshal(fields[name], into); err != nil {
			return d, err
		}
	}
	return d, nil
}

// told are the events so far.
func (s *stub) told() []string {
	var told []string
	for len(s.events.Events) > 0 {
		told = append(told, <-s.events.Events)
	}
	return told
}

// sorted are the writes in an order that does not depend on which of several at once was first.
func (s *stub) sorted() []write { return slices.SortedFunc(slices.Values(s.writes), compareWrites) }

// inOrder are the writes as they came, but for those of one kind that were made at once.
func (s *stub) inOrder() []write {
	writes := slices.Clone(s.writes)
	for begin, end := 0, 0; begin < len(writes); begin = end {
		for end < len(writes) && writes[end].Verb == writes[begin].Verb && writes[end].Kind == writes[begin].Kind {
			end++
		}
		slices.SortFunc(writes[begin:end], compareWrites)
	}
	return writes
}

func compareWrites(a, b write) int {
	return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
