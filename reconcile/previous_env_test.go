//go:build env

package reconcile_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile"
	"quorate.dev/render"
)

// leftBy brings a cluster of an earlier release to life, as that has left it: everything is applied
// as it was, by the same manager, so that the API server comes to the same managedFields. Only the
// members are not the same, because their addresses are not; so the Pods are let form a cluster
// first. Its status says that it is not ready, for the release that takes it over to find out that
// it is.
func (s *stage) leftBy(file string) *api.EtcdCluster {
	s.Helper()
	was := reconcile.ReadPrevious(s.T, file)
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: was.Cluster.Name, Namespace: s.ns}, Spec: was.Cluster.Spec}
	s.create(c)
	c.Status.ClusterID = was.Cluster.Status.ClusterID // so that it is known to have no TLS
	here := []string{was.Cluster.Namespace, s.ns, string(was.Cluster.UID), string(c.UID)}
	var members []string
	for _, m := range was.Cluster.Status.Members {
		members = append(members, m.Name)
	}
	for _, o := range reconcile.ReadPrevious(s.T, file, here...).Objects {
		ac := s.appliedTo(o)
		if pod, ok := ac.(*corev1ac.PodApplyConfiguration); ok {
			pod.Annotations[api.AnnotationInitialCluster] = render.Bootstrap(c, members)
			pod.Annotations[api.AnnotationInitialClusterState] = render.StateNew
			for _, waits := range []string{api.AnnotationCheckAtStart, api.AnnotationInitialCorruptCheck} { // for all others, where all start at once
				if value, ok := pod.Annotations[waits]; ok {
					pod.Annotations[waits] = strings.Replace(value, "true", "false", 1)
				}
			}
		}
		s.must(s.Apply(s.Context(), ac, client.FieldOwner(api.Manager), client.ForceOwnership))
	}
	for _, pod := range s.pods(c) {
		s.awaitPod(&pod, "ready", func() bool { return history.Ready(&pod) })
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	list, err := s.etcd(c).MemberList(ctx)
	if err != nil {
		s.Fatalf("list the members of %s: %v", c.Name, err)
	}
	here = append(here, was.Cluster.Status.ClusterID, strconv.FormatUint(list.Header.ClusterId, 16))
	for _, m := range was.Cluster.Status.Members {
		n := slices.IndexFunc(list.Members, func(l *etcdserverpb.Member) bool { return l.Name == m.Name })
		if n < 0 {
			s.Fatalf("%s is not among the members of %s: %v", m.Name, c.Name, list.Members)
		}
		here = append(here, m.ID, strconv.FormatUint(list.Members[n].ID, 16))
	}
	left := reconcile.ReadPrevious(s.T, file, here...)
	for _, o := range left.Objects {
		s.must(s.Apply(s.Context(), s.appliedTo(o), client.FieldOwner(api.Manager), client.ForceOwnership))
	}
	meta.SetStatusCondition(&left.Cluster.Status.Conditions, metav1.Condition{
		Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: "Left", Message: "by an earlier release", ObservedGeneration: c.Generation,
	})
	raw, err := json.Marshal(left.Cluster.Status)
	s.must(err)
	status := apiac.EtcdClusterStatus()
	s.must(json.Unmarshal(raw, status))
	s.must(s.Status().Apply(s.Context(), apiac.EtcdCluster(c.Name, c.Namespace).WithStatus(status), client.FieldOwner(api.Manager), client.ForceOwnership))
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(c), c))
	return c
}

// appliedTo is what Quorate has applied to an object.
func (s *stage) appliedTo(o client.Object) runtime.ApplyConfiguration {
	s.Helper()
	var ac runtime.ApplyConfiguration
	var err error
	switch o := o.(type) {
	case *corev1.Pod:
		ac, err = corev1ac.ExtractPod(o, api.Manager)
	case *corev1.PersistentVolumeClaim:
		ac, err = corev1ac.ExtractPersistentVolumeClaim(o, api.Manager)
	case *corev1.Service:
		ac, err = corev1ac.ExtractService(o, api.Manager)
	case *policyv1.PodDisruptionBudget:
		ac, err = policyv1ac.ExtractPodDisruptionBudget(o, api.Manager)
	}
	s.must(err)
	return ac
}

// preview is what this code says that it would do, by reading alone.
func (s *stage) preview(c *api.EtcdCluster) reconcile.Outlook {
	s.Helper()
	only := &wire{}
	cfg := rest.CopyConfig(apiServer)
	cfg.QPS = -1
	cfg.Wrap(only.over)
	reader, err := client.New(cfg, client.Options{Scheme: s.scheme})
	s.must(err)
	cluster := &api.EtcdCluster{}
	s.must(reader.Get(s.Context(), client.ObjectKeyFromObject(c), cluster))
	o, err := reconcile.Preview(s.Context(), reader, cluster)
	s.must(err)
	if wrote := only.writes(); len(wrote) > 0 {
		s.Errorf("a preview wrote: %v", wrote)
	}
	return o
}

// foretold is the change of an object that an outlook tells of.
func foretold(o reconcile.Outlook, object client.Object) *reconcile.ObjectChange {
	n := slices.IndexFunc(o.Objects, func(change reconcile.ObjectChange) bool {
		return change.Kind == object.GetObjectKind().GroupVersionKind().Kind && change.Name == object.GetName()
	})
	if n < 0 {
		return nil
	}
	return &o.Objects[n]
}

// effects on Pods that an outlook tells of, by name.
func effects(o reconcile.Outlook) map[string]reconcile.Effect {
	pods := map[string]reconcile.Effect{}
	for _, change := range o.Objects {
		if change.Kind == "Pod" && change.Effect != reconcile.EffectApplied {
			pods[change.Name] = change.Effect
		}
	}
	return pods
}

// TestTakenOver: what an earlier release has left is taken over. No Pod is recreated and no
// container started again; what is changed instead was told before, and nothing else is. A
// container that ends starts again, and a change of the spec is made, as it was told before.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	next := map[string]string{etcd35: etcd36, etcd36: etcd37}
	clusters := reconcile.PreviousClusters(t)
	maps.DeleteFunc(clusters, func(name, _ string) bool {
		return strings.HasSuffix(name, "/grown") // a member that came later cannot be let come again; TestPreviousStays judges its Pod
	})
	for name, file := range share.Of(t, clusters, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c := s.leftBy(file)
			contract.Watch(s, c)
			kept := data{}
			s.write(c, kept)
			load, who := s.load(c), identityOf(c)
			uids, restarts := s.lives(c)
			before := s.everything(c)
			outlook := s.preview(c)
			if pods := effects(outlook); len(pods) > 0 || outlook.Step != nil {
				t.Errorf("the preview tells of changes to Pods: %v, %v", pods, outlook.Step)
			}

			stop := s.operate()
			s.ready(c)
			for _, o := range before[1:] {
				s.awaitObject(o.DeepCopyObject().(client.Object), "as was told before", func() bool { return foretold(s.preview(c), o) == nil })
			}
			load.await(20)
			s.onlyForetold(outlook, before, s.everything(c))
			if u, r := s.lives(c); !maps.Equal(u, uids) || !maps.Equal(r, restarts) {
				t.Errorf("Pods were changed: %v %v, then %v %v", uids, restarts, u, r)
			}
			s.same(c, who)
			s.must(s.hostlet.Kill(s.ns, "db-1")) // its container finds in the Pod what it was made to read there
			killed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}}
			s.awaitPod(killed, "started again", func() bool {
				return killed.Status.ContainerStatuses[0].RestartCount > restarts["db-1"] && history.Ready(killed)
			})
			s.ready(c)
			_, restarts = s.lives(c)

			stop()
			version := next[c.Spec.Version]
			s.change(c, func() { c.Spec.Version = version })
			told := effects(s.preview(c))
			if len(told) != 3 {
				t.Errorf("the preview does not tell of a change of all Pods: %v", told)
			}
			s.operate()
			s.runs(c, version)
			now, again := s.lives(c)
			for member, effect := range told {
				recreated := now[member] != uids[member]
				restarted := !recreated && again[member] != restarts[member]
				if recreated != (effect == reconcile.EffectRecreated) || restarted != (effect == reconcile.EffectRestarted) {
					t.Errorf("%s was to be %s: recreated %t, started again %t", member, effect, recreated, restarted)
				}
			}
			load.check()
			s.settled(c, kept)
			s.same(c, who)
		})
	}
}

// onlyForetold fails where anything of an object is not as it was, and was not told before; or was,
// and is as it was.
func (s *stage) onlyForetold(outlook reconcile.Outlook, before, after []client.Object) {
	s.Helper()
	type changeable struct {
		Labels, Annotations map[string]string
		Owners              []metav1.OwnerReference
		Spec                any
	}
	of := func(o client.Object) changeable {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		s.must(err)
		return changeable{o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences(), raw["spec"]}
	}
	for n, o := range before[1:] {
		want := of(o)
		if change := foretold(outlook, o); change != nil {
			for _, d := range change.Differences {
				place, key, _ := strings.Cut(strings.TrimSuffix(d.Path, "]"), "[")
				var changes map[string]string
				switch place {
				case "metadata.annotations":
					changes = want.Annotations
				case "metadata.labels":
					changes = want.Labels
				case "spec.selector": // of the Service for clients
					selector, _, err := unstructured.NestedStringMap(map[string]any{"spec": want.Spec}, "spec", "selector")
					s.must(err)
					selector[key] = d.To
					s.must(unstructured.SetNestedStringMap(want.Spec.(map[string]any), selector, "selector"))
					continue
				case "spec.ipFamilyPolicy": // of the Service for clients, which an API server had chosen
					s.must(unstructured.SetNestedField(want.Spec.(map[string]any), d.To, "ipFamilyPolicy"))
					continue
				case "spec.ports.client": // of the headless Service, which had it
					spec := want.Spec.(map[string]any)
					ports, _, err := unstructured.NestedSlice(spec, "ports")
					s.must(err)
					ports = slices.DeleteFunc(ports, func(port any) bool { return d.To == "" && port.(map[string]any)["name"] == "client" })
					s.must(unstructured.SetNestedSlice(spec, ports, "ports"))
					continue
				default:
					s.Errorf("%s %s: the preview tells of %s, which this test cannot judge", change.Kind, change.Name, d)
					continue
				}
				if d.To == "" {
					delete(changes, key)
				} else {
					changes[key] = d.To
				}
			}
		}
		if diff := cmp.Diff(want, of(after[1:][n])); diff != "" {
			s.Errorf("%T %s is not what the preview told: -want +got:\n%s", o, o.GetName(), diff)
		}
	}
}
