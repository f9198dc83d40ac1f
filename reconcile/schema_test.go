package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestSchemaRefuses: a spec that an earlier schema has let in is refused in the words of an API
// server, but for what a member has served with.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const (
		count = `spec.options.snapshotCount: Invalid value: 50: spec.options.snapshotCount in body should be greater than or equal to 100`
		users = `spec.pod.securityContext.fsGroup: Invalid value: spec.pod.securityContext.fsGroup 65532 goes with runAsUser 65532 alone, because volumes of that group are not given to another user: write another number, for example that of runAsUser`
		keys  = `spec.pod.metadata.labels: Invalid value: keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix`
		enum  = `spec.storage.retention.whenScaled: Unsupported value: "Nope": supported values: "Retain", "Delete"`
	)
	options := func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(50))} }
	group := func(c *api.EtcdCluster) {
		c.Spec.Pod = &api.Pod{SecurityContext: &api.PodSecurityContext{FSGroup: new(int64(65532))}}
	}
	account := func(c *api.EtcdCluster) { c.Spec.Pod = &api.Pod{ServiceAccountName: "members"} }
	key := func(c *api.EtcdCluster) {
		c.Spec.Pod.Metadata = &api.Metadata{Labels: api.Labels{"etcd.quorate.dev/cluster": "a"}}
	}
	retention := func(c *api.EtcdCluster) { c.Spec.Storage.Retention = &api.Retention{WhenScaled: "Nope"} }
	cases := map[string]struct {
		reason  string
		spec    []func(*api.EtcdCluster)
		served  func(*api.EtcdCluster) // nil: no volume says anything
		former  bool                   // it was a member of before a restore in place
		invalid string
	}{
		"Right":  {reason: "it is as the schema has it"},
		"Number": {reason: "a bound", spec: []func(*api.EtcdCluster){options}, invalid: count},
		"Enum":   {reason: "the schema says it, and Go did not", spec: []func(*api.EtcdCluster){retention}, invalid: enum},
		"Duration": {
			reason: "the schema says it, and Go did not",
			spec: []func(*api.EtcdCluster){func(c *api.EtcdCluster) {
				c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(api.Duration("7d"))}
			}},
			invalid: `spec.recovery.replaceAfter: Invalid value: "7d": spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never`,
		},
		"All": {reason: "all are told, each once", spec: []func(*api.EtcdCluster){retention, options}, invalid: count + "; " + enum},
		"Served": {
			reason: "a member has served with it", spec: []func(*api.EtcdCluster){options}, served: options,
		},
		"FormerServed": {
			reason: "one of before has served with it: the new ones are to be like it", spec: []func(*api.EtcdCluster){options}, served: options, former: true,
		},
		"ServedOther": {
			reason: "it was another value", spec: []func(*api.EtcdCluster){options},
			served: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(40))} }, invalid: count,
		},
		"ServedPod":         {reason: "a member has served with it", spec: []func(*api.EtcdCluster){group}, served: group},
		"ServedPodOther":    {reason: "it was another group", spec: []func(*api.EtcdCluster){group}, served: account, invalid: users},
		"ServedPodMetadata": {reason: "volumes do not say which metadata there was", spec: []func(*api.EtcdCluster){key}, served: account, invalid: keys},
		"ServedRest": {
			reason: "volumes do not say what else there was", spec: []func(*api.EtcdCluster){options, retention}, served: options, invalid: enum,
		},
		"ServedChanged": {
			reason: "the rest of the options is judged", served: options,
			invalid: `spec.options.heartbeatInterval: Invalid value: "0ms": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`,
			spec:    []func(*api.EtcdCluster){options, func(c *api.EtcdCluster) { c.Spec.Options.HeartbeatInterval = new(api.Duration("0ms")) }},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), observed{}
			if tc.served != nil {
				tc.served(c)
				claims := map[string]*corev1.PersistentVolumeClaim{
					"db-0": {ObjectMeta: metav1.ObjectMeta{Name: "db-0", Annotations: map[string]string{api.AnnotationServed: render.Served(c, "")}}},
				}
				if seen.claims = claims; tc.former {
					seen.claims, seen.former.claims = nil, claims
				}
			}
			for _, change := range tc.spec {
				change(c)
			}
			got := ""
			if err := valid(c, seen); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.invalid, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefusedBySchema: of a spec that the schema refuses no Pod is made, and no Pod is found to be
// outdated by it. A Pod that is gone comes back as its member has served.
func TestRefusedBySchema(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		served bool
		made   bool
	}{
		"Served":  {reason: "its volume says with what it has served", served: true, made: true},
		"Unknown": {reason: "there is nothing else to make it of"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			if !tc.served {
				delete(w.claims["db-0"].Annotations, api.AnnotationServed)
			}
			w.cluster.Spec.Storage.Retention = &api.Retention{WhenScaled: "Nope"}
			w.cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(20000))}
			seen := observed{Observed: facts(w.cluster, w.pods, w.claims, w.asked, limits{}), pods: w.pods, claims: w.claims}
			for _, i := range seen.Instances {
				if i.Pod.Outdated || i.Pod.Change != membership.ChangeNone {
					t.Errorf("%s: %s is to become what the schema refuses: %s", tc.reason, i.Name, i.Pod.Change)
				}
			}
			m := member(w.cluster, seen, "db-0")
			of, proved := seen.made(w.cluster, "db-0")
			m.Proved = proved
			if _, err := absentPod(of, seen, m); (err == nil) != tc.made {
				t.Errorf("%s: made: %t, want %t: %v", tc.reason, err == nil, tc.made, err)
			}
		})
	}
}
