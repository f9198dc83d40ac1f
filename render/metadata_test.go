package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

// TestServedMetadata: what a record says of labels and annotations after a look at a Pod that was
// created with those of one spec, and what a Pod is created with then where the spec asks for more.
func TestServedMetadata(t *testing.T) {
	t.Parallel()
	labelled := func(everywhere, onPods string) func(*api.EtcdCluster) {
		return func(c *api.EtcdCluster) {
			c.Spec.AdditionalMetadata, c.Spec.Pod = nil, nil
			if everywhere != "" {
				c.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"a": everywhere, "b": everywhere}}
			}
			if onPods != "" {
				c.Spec.Pod = &api.Pod{ServiceAccountName: "members", Metadata: &api.Metadata{Labels: api.Labels{"b": onPods}, Annotations: map[string]string{"c": onPods}}}
			}
		}
	}
	const bare = `{"version":"3.6.16","tls":{"mode":"Disabled"}}`
	with := func(metadata string) string { return strings.TrimSuffix(bare, "}") + `,"metadata":` + metadata + `}` }
	type args struct {
		record   string
		created  func(*api.EtcdCluster) // the spec of which the Pod was created
		spec     func(*api.EtcdCluster) // the spec as it is
		released bool                   // the Pod is of a build that did not tell with what it was created
	}
	type want struct {
		record  string
		labels  api.Labels // a and b, on a Pod as it was before
		no      bool       // there is no other Pod than the spec asks for
		account string     // the ServiceAccount of that Pod
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"None": {
			reason: "it was created without any, and that is known", args: args{record: bare, created: labelled("", ""), spec: labelled("", "")},
			want: want{record: with(`{}`), no: true},
		},
		"Created": {
			reason: "those of both fields, of which those of Pods go first", args: args{record: bare, created: labelled("x", "y"), spec: labelled("x", "y")},
			want: want{record: with(`{"labels":{"a":"x","b":"y"},"annotations":{"c":"y"}}`), no: true},
		},
		"Same": {
			reason: "nothing to write", args: args{record: with(`{"labels":{"a":"x","b":"x"}}`), created: labelled("x", ""), spec: labelled("x", "")},
			want: want{record: with(`{"labels":{"a":"x","b":"x"}}`), no: true},
		},
		"Followed": {
			reason: "a Pod that got others while it ran was not created with them", args: args{record: with(`{"labels":{"a":"x","b":"x"}}`), created: labelled("x", ""), spec: labelled("z", "z")},
			want: want{record: with(`{"labels":{"a":"x","b":"x"}}`), labels: api.Labels{"a": "x", "b": "x"}, account: "members"},
		},
		"Added": {
			reason: "a record of an earlier build does not say that there were none", args: args{record: bare, created: labelled("", ""), spec: labelled("x", "")},
			want: want{record: bare, no: true},
		},
		"AddedLater": {
			reason: "the first ones may be refused, and it was created without", args: args{record: with(`{}`), created: labelled("", ""), spec: labelled("x", "")},
			want: want{record: with(`{}`)},
		},
		"Removed": {
			reason: "a policy may ask for some", args: args{record: with(`{"labels":{"a":"x","b":"x"}}`), created: labelled("x", ""), spec: labelled("", "")},
			want: want{record: with(`{"labels":{"a":"x","b":"x"}}`), labels: api.Labels{"a": "x", "b": "x"}},
		},
		"Gone": {
			reason: "a Pod was created without", args: args{record: with(`{"labels":{"a":"x","b":"x"}}`), created: labelled("", ""), spec: labelled("", "")},
			want: want{record: with(`{}`), no: true},
		},
		"Released": {
			reason: "it is not known what that one was created with, so nothing is left out of the next one", args: args{record: bare, created: labelled("x", ""), spec: labelled("x", ""), released: true},
			want: want{record: bare, no: true},
		},
		"ReleasedWithout": {
			reason: "nor that it was created without", args: args{record: bare, created: labelled("", ""), spec: labelled("", ""), released: true},
			want: want{record: bare, no: true},
		},
		"Reserved": {
			reason: "what Quorate writes itself comes from nowhere else", args: args{record: with(`{"labels":{"a":"x","etcd.quorate.dev/clients":"out"}}`), created: labelled("x", ""), spec: labelled("z", "")},
			want: want{record: with(`{"labels":{"a":"x","etcd.quorate.dev/clients":"out"}}`), labels: api.Labels{"a": "x"}},
		},
		"Full": {
			reason: "what has to be there to go back to comes first", args: args{record: with(`{"labels":{"a":"x"}}`), created: noted, spec: noted},
			want: want{record: with(`{"labels":{"a":"x"}}`), labels: api.Labels{"a": "x"}},
		},
		"Costly": {
			reason: "a quantity that takes a minute to parse is nothing that Quorate wrote", args: args{record: `{"resources":{"limits":{"cpu":"1e-100000000"}},"metadata":{"labels":{"a":"x"}}}`, created: labelled("", ""), spec: labelled("", "")},
			want: want{record: `{"resources":{"limits":{"cpu":"1e-100000000"}},"metadata":{"labels":{"a":"x"}}}`, no: true},
		},
		"NoRecord": {
			reason: "nothing is known", args: args{record: "", created: labelled("x", ""), spec: labelled("z", "")},
			want: want{no: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			m := firstMember(c)
			tc.args.created(c)
			pod := livePod(t, c, m)
			if tc.args.released {
				pod.Annotations[api.AnnotationRevision] = revision(c).String()
			}
			tc.args.spec(c)
			got := want{record: NameMetadata(tc.args.record, c, pod)}
			before, ok := WithServedMetadata(c, got.record)
			if got.no = !ok; ok {
				now := livePod(t, before, m)
				got.account = now.Spec.ServiceAccountName
				for _, key := range []string{"a", "b"} {
					if value, ok := now.Labels[key]; ok {
						if got.labels == nil {
							got.labels = api.Labels{}
						}
						got.labels[key] = value
					}
				}
				if now.Labels[api.LabelClients] != api.ClientsIn {
					t.Errorf("the label of Quorate is %q", now.Labels[api.LabelClients])
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// noted has annotations for which a record has no room.
func noted(c *api.EtcdCluster) {
	c.Spec.AdditionalMetadata = &api.Metadata{Annotations: map[string]string{"note": strings.Repeat("n", mostServed)}}
}
