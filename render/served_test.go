package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// wrong is a spec that has changed in every part that a Pod is made of.
func wrong(c *api.EtcdCluster) {
	c.Spec.Version = "3.7.3"
	c.Spec.Image = &api.Image{Repository: "example.com/etcd", Digests: []api.ImageDigest{{Version: "3.7.3", Digest: "sha256:" + strings.Repeat("7", 64)}}, PullPolicy: corev1.PullAlways}
	c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))}
	c.Spec.Scheduling = &api.Scheduling{PriorityClassName: "high"}
	users := &api.PodSecurityContext{RunAsUser: new(int64(7))}
	c.Spec.Pod = &api.Pod{Metadata: podMetadata(c), ServiceAccountName: "wrong", SecurityContext: users} // metadata comes by itself
	resourced("1", "1Gi", "", "")(c)
	c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "wrong"}, OperatorSecretRef: &api.SecretReference{Name: "too"}}, Peer: ptr.Deref(c.Spec.TLS, api.TLS{}).Peer}
}

// TestServedPod: whatever the spec says by now, a Pod that is made of what a member has served with
// is the one that it had.
func TestServedPod(t *testing.T) {
	t.Parallel()
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, name)
			m := firstMember(c)
			want, said := livePod(t, c, m), Served(c, "")
			wrong(c)
			before := c.DeepCopy()
			served, ok := AsServed(c, said)
			if !ok {
				t.Fatalf("%q says nothing", said)
			}
			if diff := cmp.Diff(want, livePod(t, served, m)); diff != "" {
				t.Errorf("another Pod: -want, +got\n%s", diff)
			}
			if change, parts, err := Needs(want, served, m); change != ChangeNone || err != nil {
				t.Errorf("the Pod that served needs %s (%v): %v", change, parts, err)
			}
			if diff := cmp.Diff(before, c); diff != "" {
				t.Errorf("the EtcdCluster has changed: -before, +after\n%s", diff)
			}
		})
	}
}

// TestServed holds what is written, and when what is there stays.
func TestServed(t *testing.T) {
	t.Parallel()
	large := func(c *api.EtcdCluster) {
		c.Spec.Scheduling = &api.Scheduling{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "node", Operator: corev1.NodeSelectorOpIn, Values: []string{strings.Repeat("n", mostServed)}}},
			}}},
		}}}
	}
	cases := map[string]struct {
		reason string
		said   string
		spec   func(*api.EtcdCluster)
		want   string
	}{
		"First":  {reason: "what a Pod is made of, and no defaults", want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`},
		"Same":   {reason: "nothing to write", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`},
		"Before": {reason: "what differs is written", said: `{"version":"3.5.35","tls":{"mode":"Disabled"}}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`},
		"WithV":  {reason: "a v is no version", said: `{"version":"v3.6.16","tls":{"mode":"Disabled"}}`, want: `{"version":"v3.6.16","tls":{"mode":"Disabled"}}`},
		"Options": {
			reason: "another part", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`, spec: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} },
			want: `{"version":"3.6.16","options":{"snapshotCount":5000},"tls":{"mode":"Disabled"}}`,
		},
		"Default": {
			reason: "a default that is written out is the same", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`, spec: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(snapshotCount))} },
			want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
		},
		"Quantity": {
			reason: "and so is another way to write a number", said: `{"version":"3.6.16","resources":{"requests":{"memory":"1Gi"}},"tls":{"mode":"Disabled"}}`,
			spec: func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024Mi")}}
			},
			want: `{"version":"3.6.16","resources":{"requests":{"memory":"1Gi"}},"tls":{"mode":"Disabled"}}`,
		},
		"Pod": {
			reason: "and not its metadata, which comes to a Pod that runs", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
			spec: func(c *api.EtcdCluster) {
				c.Spec.Pod = &api.Pod{
					Metadata: &api.Metadata{Labels: api.Labels{"a": "b"}}, ServiceAccountName: "members", SecurityContext: &api.PodSecurityContext{},
				}
			},
			want: `{"version":"3.6.16","pod":{"serviceAccountName":"members","securityContext":{}},"tls":{"mode":"Disabled"}}`,
		},
		"PodMetadata": {
			reason: "which by itself is nothing", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
			spec: func(c *api.EtcdCluster) {
				c.Spec.Pod = &api.Pod{Metadata: &api.Metadata{Labels: api.Labels{"a": "b"}}}
			},
			want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
		},
		"Clients": {
			reason: "what is served to clients, without what goes into certificates", said: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
			spec: func(c *api.EtcdCluster) {
				clients(api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed, AltNames: []api.AltName{"a"}, RotateAuthority: "b"})(c)
			},
			want: `{"version":"3.6.16","tls":{"mode":"Managed","plaintext":"Allowed"}}`,
		},
		"ClientsOwn": {
			reason: "with both Secrets of others", said: `{"version":"3.6.16","tls":{"mode":"Managed"}}`, spec: clients(ownSecrets("a", "b")),
			want: `{"version":"3.6.16","tls":{"mode":"Secret","secretRef":{"name":"a"},"operatorSecretRef":{"name":"b"}}}`,
		},
		"ClientsForged": {
			reason: "what Quorate has not written says nothing", said: `{"version":"3.6.16","tls":{"mode":"Secret"}}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
		},
		"ClientsOff": {
			reason: "plain text is named", said: `{"version":"3.6.16","tls":{"mode":"Managed"}}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
		},
		"ClientsUnsaid": {
			reason: "a build that did not know of it named nothing", said: `{"version":"3.6.16"}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`,
		},
		"Others":     {reason: "what another release of Quorate has written beside", said: `{"version":"3.6.16","tls":{"mode":"Disabled"},"further":1}`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"},"further":1}`},
		"Garbage":    {reason: "what cannot be read says nothing", said: `{`, want: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`},
		"Large":      {reason: "an object has room for so much, and other annotations matter more: what is there stays", said: `{"version":"3.6.16"}`, spec: large, want: `{"version":"3.6.16"}`},
		"LargeFirst": {reason: "there is nothing to keep", spec: large},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Version = "3.6.16"
			if tc.spec != nil {
				tc.spec(c)
			}
			if diff := cmp.Diff(tc.want, Served(c, tc.said)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestValidateServed: a spec of which a volume has no room to keep what members served with is
// refused before anything is changed.
func TestValidateServed(t *testing.T) {
	t.Parallel()
	nodes := func(count int) *api.Scheduling {
		in := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn}
		for n := range count {
			in.Values = append(in.Values, fmt.Sprintf("ip-10-%03d-%03d-17.eu-central-1.compute.internal", n/250, n%250))
		}
		return &api.Scheduling{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in}}},
		}}}}
	}
	cases := map[string]struct {
		reason string
		args   func(*api.EtcdCluster)
		want   string
	}{
		"Small": {reason: "an ordinary one", args: func(*api.EtcdCluster) {}},
		"Fits":  {reason: "up to the bound", args: func(c *api.EtcdCluster) { c.Spec.Scheduling = nodes(1300) }},
		"Large": {
			reason: "the part that takes most is named",
			args: func(c *api.EtcdCluster) {
				c.Spec.Scheduling, c.Spec.Options = nodes(1500), &api.Options{Flags: map[string]string{"max-txn-ops": "256"}}
			},
			want: "spec.scheduling is too large, with 73690 bytes as JSON: make it smaller. Together spec.image, resources, options, pod, scheduling and tls.client have 73792 bytes; the limit is 65536, because the claim of each member keeps a copy for a rollback",
		},
		"Memory": {
			reason: "no volume keeps it",
			args: func(c *api.EtcdCluster) {
				c.Spec.Scheduling, c.Spec.Storage.Medium = nodes(1500), api.MediumMemory
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Version = "3.6.16"
			tc.args(c)
			if diff := cmp.Diff(tc.want, text(ValidateServed(c))); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSaid: a record of a build that did not know of the clients' port has the mode that the claim
// records, and else the one in force.
func TestSaid(t *testing.T) {
	t.Parallel()
	plain, managed, own := api.ClientTLS{Mode: api.TLSDisabled}, api.ClientTLS{Mode: api.TLSManaged}, ownSecrets("a", "b")
	cases := map[string]struct {
		reason string
		record string
		claim  string // AnnotationTLS
		now    api.ClientTLS
		want   api.ClientTLS
	}{
		"Managed":   {reason: "the claim says so", record: `{"version":"3.6.16"}`, claim: "client=Managed,peer=Managed", now: plain, want: managed},
		"Plain":     {reason: "the claim says so", record: `{"version":"3.6.16"}`, claim: "client=Disabled,peer=Managed", now: managed, want: plain},
		"Secret":    {reason: "the names are in the spec alone", record: `{"version":"3.6.16"}`, claim: "client=Secret,peer=Secret", now: own, want: own},
		"InForce":   {reason: "the claim says nothing either", record: `{"version":"3.6.16"}`, now: managed, want: managed},
		"Named":     {reason: "the record itself is right", record: `{"version":"3.6.16","tls":{"mode":"Disabled"}}`, claim: "client=Managed,peer=Managed", now: managed, want: plain},
		"Null":      {reason: "nothing is named", record: `{"version":"3.6.16","tls":null}`, claim: "client=Managed,peer=Managed", now: plain, want: managed},
		"OtherCase": {reason: "as encoding/json reads names", record: `{"version":"3.6.16","TLS":{"mode":"Disabled"}}`, claim: "client=Managed,peer=Managed", now: managed, want: plain},
		"Hostile":   {reason: "Quorate writes no such mode", record: `{"version":"3.6.16"}`, claim: `client="},"version":"1`, now: managed, want: managed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			clients(tc.now)(c)
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationTLS: tc.claim}}}
			served, ok := AsServed(c, Said(tc.record, claim))
			if !ok {
				t.Fatalf("%s: it says nothing", tc.reason)
			}
			if diff := cmp.Diff(tc.want, served.ClientPort()); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
	for _, record := range []string{"", "{", "[]", `{"version":"3.6.16"`, strings.Repeat(" ", mostServed) + `{"version":"3.6.16"}`} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationTLS: "client=Managed"}}}
		if got := Said(record, claim); got != record {
			t.Errorf("what cannot be read became %q", got)
		}
	}
}

// TestServedHostile: a person who may write an annotation may write anything there. What Quorate
// has not written says nothing, and costs nothing.
func TestServedHostile(t *testing.T) {
	t.Parallel()
	requests := func(quantity string) string {
		return `{"version":"3.6.16","resources":{"requests":{"memory":` + quantity + `}}}`
	}
	cases := map[string]struct {
		reason string
		said   string
		want   bool
	}{
		"Plain":          {reason: "as the spec has it", said: requests(`"1Gi"`), want: true},
		"Number":         {reason: "a number is one", said: requests(`1073741824`), want: true},
		"Canonical":      {reason: "as a small fraction is written", said: requests(`"500n"`), want: true},
		"Exponent":       {reason: "as a large number is written", said: requests(`"1e9"`), want: true},
		"Tiny":           {reason: "it is rounded up digit by digit", said: requests(`"1e-100000000"`)},
		"TinyNumber":     {reason: "it needs no quotes", said: requests(`1e-100000000`)},
		"Huge":           {reason: "to compare it all digits are written", said: requests(`"1e999999999"`)},
		"Digits":         {reason: "the digits may be there already", said: requests(`"` + strings.Repeat("9", 50_000) + `"`)},
		"Limits":         {reason: "each list is read", said: `{"version":"3.6.16","resources":{"limits":{"cpu":"1e-100000000"}}}`},
		"OtherCase":      {reason: "as encoding/json reads names", said: `{"version":"3.6.16","RESOURCES":{"LIMITS":{"cpu":"1e-100000000"}}}`},
		"Twice":          {reason: "the last one counts, and all are parsed", said: `{"resources":{"limits":{"cpu":"1e-100000000"}},"resources":{"limits":{"cpu":"1"}},"version":"3.6.16"}`},
		"Quota":          {reason: "each field that is a quantity", said: `{"version":"3.6.16","options":{"quotaBackendSize":"1e-100000000"}}`},
		"QuotaAsWritten": {reason: "as the spec has it", said: `{"version":"3.6.16","options":{"quotaBackendSize":"2Gi"}}`, want: true},
		"Long":           {reason: "Quorate writes none that is longer than its bound", said: `{"version":"3.6.16"}` + strings.Repeat(" ", mostServed)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, ok := AsServed(load(t, "minimal"), tc.said)
			if diff := cmp.Diff(tc.want, ok); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: it took %s", tc.reason, took)
			}
		})
	}
}

// TestServedQuantities: no field of what is served is parsed as a quantity before its form was
// read.
func TestServedQuantities(t *testing.T) {
	t.Parallel()
	var found []string
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		switch {
		case of == reflect.TypeFor[resource.Quantity]():
			found = append(found, path)
		case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice:
			walk(path, of.Elem())
		case of.Kind() == reflect.Map:
			walk(path+"[]", of.Elem())
		case of.Kind() == reflect.Struct:
			for field := range of.Fields() {
				walk(path+"."+field.Name, field.Type)
			}
		}
	}
	walk("", reflect.TypeFor[served]())
	want := []string{".Resources.Requests[]", ".Resources.Limits[]", ".Options.QuotaBackendSize"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("add what is new to the type servedQuantities: -want, +got\n%s", diff)
	}
}

// TestProved: what was found right once is not judged again. Whatever the spec says by now, and
// whatever a later Quorate refuses, the Pod of a member that has served is made.
func TestProved(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		served   func(*api.EtcdCluster)
		version  string                 // that its volume says; empty: as the spec
		capacity string                 // of its volume; empty: as the spec
		since    func(*api.EtcdCluster) // of the spec
		arg      string                 // that it has
	}{
		"SmallerVolume": {
			reason: "the quota that it has served with is no less than the volumes of the spec",
			served: func(c *api.EtcdCluster) {
				c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("3Gi"))}
			},
			since: func(c *api.EtcdCluster) {
				c.Spec.Storage.Size = resource.MustParse("2Gi")
				c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("1Gi"))}
			},
			arg: "--quota-backend-bytes=3221225472",
		},
		"SmallerVolumeAlone": {
			reason: "a quota that was half of its volume is that still", capacity: "3Gi",
			since: func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("1Gi") },
			arg:   "--quota-backend-bytes=1610612736",
		},
		"Refused": {
			reason: "a flag that is refused by now",
			served: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"max-learners": "3"}} },
			arg:    "--max-learners=3",
		},
		"Useless": {
			reason: "a value that is refused by now",
			served: func(c *api.EtcdCluster) {
				c.Spec.Version, c.Spec.Options = "3.7.3", &api.Options{Flags: map[string]string{"compaction-batch-limit": "-1", "compaction-sleep-interval": "2562047h"}}
			},
			arg: "--compaction-batch-limit=-1",
		},
		"Unsupported": {
			reason:  "a version that is not supported any more",
			version: "3.4.45", arg: "--strict-reconfig-check=true",
		},
		"WrongSpec": {
			reason: "a spec that nothing can be made of",
			since:  func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{SnapshotCount: new(int64(1))} },
			arg:    "--snapshot-count=10000",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Storage.Size = resource.MustParse("8Gi")
			if tc.served != nil {
				tc.served(c)
			}
			said := Served(c, "")
			if tc.since != nil {
				tc.since(c)
			}
			served, ok := AsServed(c, said)
			if !ok {
				t.Fatalf("%q says nothing", said)
			}
			m := firstMember(c)
			if tc.version != "" {
				m.Version = tc.version
			}
			m.Proved = true
			if tc.capacity != "" {
				m.Capacity = new(resource.MustParse(tc.capacity))
			}
			pod, err := Pod(served, m)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if args := pod.Spec.Containers[0].Args; !slices.Contains(args, tc.arg) {
				t.Errorf("%s: want %s, got %v", tc.reason, tc.arg, args)
			}
		})
	}
}
