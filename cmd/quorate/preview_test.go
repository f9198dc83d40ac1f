package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
	"quorate.dev/render"
)

// TestTable holds what people see.
func TestTable(t *testing.T) {
	t.Parallel()
	annotations := []render.Difference{
		{Path: "metadata.annotations[a/b]", To: "1"}, {Path: "metadata.annotations[a/c]", From: "1"}, {Path: "metadata.labels.d", From: "1", To: "2"},
	}
	cases := map[string]struct {
		reason string
		args   []reconcile.Outlook
		want   string
	}{
		"Nothing": {
			reason: "no changes, said plainly",
			args:   []reconcile.Outlook{{Namespace: "a", Name: "one", Members: 1}, {Namespace: "b", Name: "two", Members: 3}},
			want: `
CLUSTER   OBJECT   CHANGE       WHY
a/one              no changes
b/two              no changes

2 clusters, 4 members: 0 Pods would be recreated, 0 started again in place, 0 resized; 0 objects would be applied, which starts nothing again
`,
		},
		"Sizes": {
			reason: "what becomes of the number of members, and of their volumes",
			args: []reconcile.Outlook{{
				Namespace: "a", Name: "one", Members: 3,
				Step: &reconcile.Upcoming{Action: "Remove", Reason: "ScalingDown", Message: "removing one-2: spec.replicas is 1"},
				Objects: []reconcile.ObjectChange{
					{Kind: "Pod", Name: "one-1", Effect: reconcile.EffectRemoved},
					{Kind: "Pod", Name: "one-2", Effect: reconcile.EffectRemoved},
					{Kind: "PersistentVolumeClaim", Name: "one-0", Effect: reconcile.EffectGrown, Differences: []render.Difference{{Path: "spec.resources.requests.storage", From: "1Gi", To: "2Gi"}}},
				},
			}},
			want: `
CLUSTER   OBJECT                        CHANGE        WHY
a/one                                   ScalingDown   removing one-2: spec.replicas is 1
a/one     Pod one-1                     removed
a/one     Pod one-2                     removed
a/one     PersistentVolumeClaim one-0   grown         spec.resources.requests.storage

1 cluster, 3 members: 0 Pods would be recreated, 0 started again in place, 0 resized; 0 objects would be applied, which starts nothing again; 1 volume would grow, 2 members be removed
`,
		},
		"Everything": {
			reason: "a line for each object",
			args: []reconcile.Outlook{{
				Namespace: "a", Name: "one", Members: 3,
				Step: &reconcile.Upcoming{Action: "Update", Reason: "Changing", Message: "recreating the Pod of one-1 (spec.options), then one-2"},
				Objects: []reconcile.ObjectChange{
					{Kind: "Service", Name: "one-client", Effect: reconcile.EffectCreated},
					{Kind: "Pod", Name: "one-0", Effect: reconcile.EffectResized, Parts: []string{"resources"}},
					{Kind: "Pod", Name: "one-1", Effect: reconcile.EffectRecreated, Parts: []string{"options", "version"}},
					{Kind: "Pod", Name: "one-2", Effect: reconcile.EffectRestarted, Parts: []string{"version"}},
					{Kind: "PersistentVolumeClaim", Name: "one-0", Effect: reconcile.EffectApplied, Differences: annotations},
				},
			}},
			want: `
CLUSTER   OBJECT                        CHANGE                   WHY
a/one                                   Changing                 recreating the Pod of one-1 (spec.options), then one-2
a/one     Service one-client            created
a/one     Pod one-0                     resized while it runs    resources
a/one     Pod one-1                     recreated                options, version
a/one     Pod one-2                     started again in place   version
a/one     PersistentVolumeClaim one-0   applied                  +annotations[a/b], -annotations[a/c], labels.d

1 cluster, 3 members: 1 Pod would be recreated, 1 started again in place, 1 resized; 2 objects would be applied, which starts nothing again
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := table(&out, tc.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), out.String()); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPreview looks at an API server with two clusters that refuses every write.
func TestPreview(t *testing.T) {
	t.Parallel()
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	wrote := errors.New("a preview writes nothing")
	server := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(
		cluster("a", "one"), cluster("b", "two"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return wrote },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return wrote },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return wrote },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return wrote
		},
	}).Build()
	cases := map[string]struct {
		reason  string
		options previewOptions
		names   []string
		want    []string
		err     string
	}{
		"All":            {reason: "those of all namespaces", options: previewOptions{all: true, output: "json"}, want: []string{"a/one", "b/two"}},
		"Namespace":      {reason: "those of one", options: previewOptions{namespace: "b", output: "json"}, want: []string{"b/two"}},
		"Named":          {reason: "this one", options: previewOptions{all: true, output: "json"}, names: []string{"one"}, want: []string{"a/one"}},
		"None":           {reason: "an empty list", options: previewOptions{namespace: "c", output: "json"}},
		"Unknown":        {reason: "a name that is wrong is no cluster without changes", options: previewOptions{all: true, output: "json"}, names: []string{"three"}, err: "no EtcdCluster three"},
		"UnknownOutput":  {reason: "what there is", options: previewOptions{all: true, output: "xml"}, err: "table or json"},
		"OtherNamespace": {reason: "it is not there", options: previewOptions{namespace: "a", output: "json"}, names: []string{"two"}, err: "no EtcdCluster two"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := tc.options.run(t.Context(), server, tc.names, &out)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var outlooks []reconcile.Outlook
			if err := json.Unmarshal(out.Bytes(), &outlooks); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range outlooks {
				got = append(got, o.Namespace+"/"+o.Name)
				if o.Step == nil || o.Step.Action != "Provision" {
					t.Errorf("%s: a cluster of which nothing is there yet is about to get its volumes, not %v", tc.reason, o.Step)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func cluster(namespace, name string) *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid"},
		Spec: api.EtcdClusterSpec{
			Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")},
			TLS: &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}},
		},
	}
}
