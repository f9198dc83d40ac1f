package reconcile

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// memories calls visit for everything in a struct that is kept by cluster: maps and sync.Maps.
func memories(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // fields that are not exported as well
	switch {
	case v.Type() == reflect.TypeFor[sync.Map](), v.Kind() == reflect.Map && v.Type().Key() == reflect.TypeFor[types.NamespacedName]():
		visit(path, v)
	case v.Kind() == reflect.Struct && v.Type().PkgPath() == reflect.TypeFor[Reconciler]().PkgPath():
		for n := range v.NumField() {
			memories(path+"."+v.Type().Field(n).Name, v.Field(n), visit)
		}
	}
}

// TestForgets: after the pass over a cluster that was deleted, nothing in the operator's memory is
// about it, whatever is kept by cluster. So the memory is bounded by what is watched, and so are
// the series that are made of it.
func TestForgets(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil) // there is no EtcdCluster
	of := reflect.ValueOf(s.Reconciler).Elem()
	gone, other := turnOf("gone"), turnOf("other")
	var kept []string
	memories("Reconciler", of, func(path string, v reflect.Value) {
		kept = append(kept, path)
		for _, key := range []types.NamespacedName{gone, other} {
			if m, synced := reflect.TypeAssert[*sync.Map](v.Addr()); synced {
				m.Store(key, key)
				continue
			}
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf(key), reflect.Zero(v.Type().Elem()))
		}
	})
	if len(kept) < 12 {
		t.Errorf("void: only %q are kept by cluster", kept)
	}
	s.changing.resumed, s.changing.waiting = true, []asker{{gone, true}, {other, true}}
	if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: gone}); err != nil {
		t.Fatal(err)
	}
	var left, lost []string
	memories("Reconciler", of, func(path string, v reflect.Value) {
		has := func(key types.NamespacedName) bool {
			if m, synced := reflect.TypeAssert[*sync.Map](v.Addr()); synced {
				_, has := m.Load(key)
				return has
			}
			return v.MapIndex(reflect.ValueOf(key)).IsValid()
		}
		if has(gone) {
			left = append(left, path)
		}
		if !has(other) {
			lost = append(lost, path)
		}
	})
	if diff := cmp.Diff([]string(nil), left); diff != "" {
		t.Errorf("what is kept of a cluster that is gone: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), lost); diff != "" {
		t.Errorf("what was lost of another cluster: -want +got:\n%s", diff)
	}
	have, wait := s.Turns()
	if slices.Contains(have, gone) || slices.Contains(wait, gone) {
		t.Errorf("a cluster that is gone has or waits for a turn: %v, %v", have, wait)
	}
}
