package users

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/index"
)

// memory has the users and roles of an etcd.
type memory struct {
	membership.Auth

	users, roles map[string]bool
}

func (m *memory) UserRoles(_ context.Context, name string) ([]string, error) {
	if !m.users[name] {
		return nil, membership.ErrUnknown
	}
	return nil, nil
}

func (m *memory) Permissions(_ context.Context, name string) ([]membership.Permission, error) {
	if !m.roles[name] {
		return nil, membership.ErrUnknown
	}
	return nil, nil
}

func (m *memory) AddUser(_ context.Context, name, _ string) error {
	m.users[name] = true
	return nil
}

func (m *memory) DeleteUser(_ context.Context, name string) error {
	delete(m.users, name)
	return nil
}

func (m *memory) AddRole(_ context.Context, name string) error {
	m.roles[name] = true
	return nil
}

func (m *memory) DeleteRole(_ context.Context, name string) error {
	delete(m.roles, name)
	return nil
}

func (m *memory) Close() error { return nil }

// TestDeletedEarly: an object that is deleted before its status says that it was applied leaves
// nothing in etcd; and one that Quorate has never applied takes nothing from it.
func TestDeletedEarly(t *testing.T) {
	t.Parallel()
	const name = "app"
	meta := metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "object"}
	of := api.ClusterReference{Name: "db"}
	kinds := map[string]struct {
		object     client.Object
		reconciler func(Shared) reconcile.Reconciler
		has        func(*memory) map[string]bool
	}{
		"EtcdUser": {
			object:     &api.EtcdUser{ObjectMeta: meta, Spec: api.EtcdUserSpec{ClusterRef: of}},
			reconciler: func(s Shared) reconcile.Reconciler { return &UserReconciler{s} },
			has:        func(m *memory) map[string]bool { return m.users },
		},
		"EtcdRole": {
			object:     &api.EtcdRole{ObjectMeta: meta, Spec: api.EtcdRoleSpec{ClusterRef: of}},
			reconciler: func(s Shared) reconcile.Reconciler { return &RoleReconciler{s} },
			has:        func(m *memory) map[string]bool { return m.roles },
		},
	}
	cases := map[string]struct {
		reason    string
		available bool // the cluster can be asked before the object is deleted
		gone      bool // it was deleted before that
		before    map[string]bool
		want      []string
	}{
		"StatusRefused": {reason: "its status could not be written, because the object was deleted meanwhile", available: true, before: map[string]bool{}},
		"Gone":          {reason: "the cache had it still when etcd was to be changed", available: true, gone: true, before: map[string]bool{}},
		"NeverAsked":    {reason: "etcd was not asked yet: what somebody else has made stays", before: map[string]bool{name: true}, want: []string{name}},
	}
	for kind, k := range kinds {
		for title, tc := range cases {
			t.Run(kind+"/"+title, func(t *testing.T) {
				t.Parallel()
				c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
				c.Status.ClusterID = "a1"
				if tc.available {
					c.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue}}
				}
				object, _ := k.object.DeepCopyObject().(client.Object)
				etcd := &memory{users: maps.Clone(tc.before), roles: maps.Clone(tc.before)}
				kube := newKube(t, c, object)
				cache := interceptor.NewClient(kube, interceptor.Funcs{
					Get: func(ctx context.Context, of client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						err := of.Get(ctx, key, o, options...)
						if apierrors.IsNotFound(err) && tc.gone {
							reflect.ValueOf(o).Elem().Set(reflect.ValueOf(object).Elem())
							return nil
						}
						return err
					},
				})
				r := k.reconciler(Shared{
					Client: cache, Reader: kube, Recorder: events.NewFakeRecorder(10),
					Connect: func(context.Context, *api.EtcdCluster) (membership.Auth, error) { return etcd, nil },
				})
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}
				if tc.gone {
					if err := kube.Delete(t.Context(), object); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				if got := k.has(etcd); !tc.gone && tc.available != got[name] && !tc.before[name] {
					t.Fatalf("void: etcd has %v", got)
				}
				if err := kube.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				if err := kube.Get(t.Context(), request.NamespacedName, object); !apierrors.IsNotFound(err) {
					t.Errorf("%s: the object is there still: %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(k.has(etcd)))); diff != "" {
					t.Errorf("%s: etcd has: -want +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// newKube has these objects, and refuses every status: another writer was first.
func newKube(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...)
	for _, o := range []client.Object{&api.EtcdUser{}, &api.EtcdRole{}} {
		b = b.WithIndex(o, index.OfCluster, func(o client.Object) []string {
			switch o := o.(type) {
			case *api.EtcdUser:
				return []string{o.Spec.ClusterRef.Name}
			case *api.EtcdRole:
				return []string{o.Spec.ClusterRef.Name}
			}
			return nil
		})
	}
	return interceptor.NewClient(b.Build(), interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return apierrors.NewConflict(schema.GroupResource{}, "app", nil)
		},
	})
}
