package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	api "quorate.dev/api/v1alpha1"
)

func TestManager(t *testing.T) {
	cases := map[string]struct {
		reason     string
		args       []string
		namespaces map[string]cache.Config
		filtered   bool
	}{
		"Default": {
			reason:   "Without flags all namespaces are watched, and clients that read metrics are checked",
			filtered: true,
		},
		"Namespaces": {
			reason:     "Commas and repetition may be mixed",
			args:       []string{"--watch-namespace=a,b", "--watch-namespace=c"},
			namespaces: map[string]cache.Config{"a": {}, "b": {}, "c": {}},
			filtered:   true,
		},
		"PlainMetrics": {
			reason: "Who turns HTTPS off turns the check off, because a token must not travel in the clear",
			args:   []string{"--metrics-secure=false"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(t, tc.args).manager()
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.namespaces, got.Cache.DefaultNamespaces); diff != "" {
				t.Errorf("%s: namespaces: -want, +got:\n%s", tc.reason, diff)
			}
			if filtered := got.Metrics.FilterProvider != nil; filtered != tc.filtered {
				t.Errorf("%s: metrics are filtered: want %t, got %t", tc.reason, tc.filtered, filtered)
			}
			for _, kind := range []schema.GroupVersionKind{api.EtcdClusterKind, api.EtcdBackupKind, api.EtcdBackupScheduleKind} {
				if !got.Scheme.Recognizes(kind) {
					t.Errorf("%s: the scheme lacks %s", tc.reason, kind)
				}
			}
		})
	}
}

// TestManagerCaches holds the memory bound: no Pod, claim, Service, budget or Job of other people
// is ever kept.
func TestManagerCaches(t *testing.T) {
	options, err := parse(t, nil).manager()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(options.Cache.ByObject); got != 5 {
		t.Errorf("want 5 kinds selected by label, got %d", got)
	}
	for object, by := range options.Cache.ByObject {
		label := api.LabelCluster
		if _, ok := object.(*batchv1.Job); ok {
			label = api.LabelBackup
		}
		if !by.Label.Matches(labels.Set{label: "example"}) || by.Label.Matches(labels.Set{"app": "web"}) {
			t.Errorf("%T: the selector %q must match what carries %s, and nothing else", object, by.Label, label)
		}
	}
}

// TestManagerCachesOurFields: of managedFields the cache keeps what is read, and no more, whatever
// others have written.
func TestManagerCachesOurFields(t *testing.T) {
	options, err := parse(t, nil).manager()
	if err != nil {
		t.Fatal(err)
	}
	ours := []metav1.ManagedFieldsEntry{{Manager: api.Manager, Operation: metav1.ManagedFieldsOperationApply}, {Manager: api.Manager, Subresource: "resize"}}
	all := []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status"}, ours[0], {Manager: "kubectl-edit"}, ours[1]}
	want := map[string][]metav1.ManagedFieldsEntry{"Pod": ours, "PersistentVolumeClaim": ours, "EtcdCluster": ours}
	got := map[string][]metav1.ManagedFieldsEntry{}
	kinds := maps.Clone(options.Cache.ByObject)
	kinds[&api.EtcdCluster{}] = cache.ByObject{Transform: options.Cache.DefaultTransform}
	for object, by := range kinds {
		object.SetManagedFields(slices.Clone(all))
		kept, err := by.Transform(object)
		if err != nil {
			t.Fatal(err)
		}
		if fields := object.GetManagedFields(); kept == any(object) && len(fields) > 0 {
			got[reflect.TypeOf(object).Elem().Name()] = fields
		}
		gone := toolscache.DeletedFinalStateUnknown{Key: "ns/db-0"}
		if kept, err := by.Transform(gone); kept != any(gone) || err != nil {
			t.Errorf("%T: what tells that an object is gone becomes %v, %v", object, kept, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestManagerRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"EmptyNamespace": {
			reason: "A trailing comma must not widen the watch to all namespaces",
			args:   []string{"--watch-namespace=a,"},
			want:   `--watch-namespace ""`,
		},
		"NoNamespace": {
			reason: "What no namespace can be called is a mistake to show at once",
			args:   []string{"--watch-namespace=Team_A"},
			want:   `--watch-namespace "Team_A"`,
		},
		"NoWorker": {
			reason: "Nothing would ever be reconciled, and the operator would look healthy",
			args:   []string{"--max-concurrent-reconciles=0"},
			want:   "--max-concurrent-reconciles is 0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(t, tc.args).manager(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func parse(t *testing.T, args []string) *operatorOptions {
	t.Helper()
	o := &operatorOptions{}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	o.flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}
