package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func named(name string) *EtcdCluster {
	return &EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

func TestOrdinal(t *testing.T) {
	t.Parallel()
	type args struct {
		cluster string
		member  string
	}
	type want struct {
		ordinal int
		ok      bool
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"First":           {"ordinals start at 0", args{"a", "a-0"}, want{0, true}},
		"Later":           {"an ordinal may have several digits", args{"a", "a-117"}, want{117, true}},
		"DashedCluster":   {"the name of a cluster may end like a member's", args{"a-1", "a-1-0"}, want{0, true}},
		"Cluster":         {"a cluster is no member of itself", args{"a", "a"}, want{}},
		"ClientService":   {"the client Service is no member", args{"a", "a-client"}, want{}},
		"Empty":           {"there is no member without an ordinal", args{"a", "a-"}, want{}},
		"OtherCluster":    {"a member of a-1 is none of a", args{"a", "a-1-0"}, want{}},
		"MemberAsCluster": {"a member of a is none of a-1", args{"a-1", "a-1"}, want{}},
		"CommonPrefix":    {"the whole name of the cluster must fit", args{"a", "ab-0"}, want{}},
		"LeadingZero":     {"one ordinal has one name", args{"a", "a-01"}, want{}},
		"Plus":            {"one ordinal has one name", args{"a", "a-+1"}, want{}},
		"Negative":        {"there is no ordinal below 0", args{"a", "a--1"}, want{}},
		"NegativeZero":    {"there is no ordinal below 0", args{"a", "a--0"}, want{}},
		"Underscore":      {"digits are not grouped", args{"a", "a-1_0"}, want{}},
		"Hexadecimal":     {"digits are decimal", args{"a", "a-0x1"}, want{}},
		"Space":           {"nothing is trimmed", args{"a", "a- 1"}, want{}},
		"OtherDigits":     {"digits are ASCII", args{"a", "a-\u0661"}, want{}},
		"Largest":         {"six digits", args{"a", "a-999999"}, want{999999, true}},
		"TooLarge":        {"a DNS label has no room for more", args{"a", "a-1000000"}, want{}},
		"Overflow":        {"a number that is too large is no ordinal", args{"a", "a-99999999999999999999"}, want{}},
		"Nothing":         {"nothing is no member", args{"a", ""}, want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ordinal, ok := named(tc.args.cluster).Ordinal(tc.args.member)
			got := want{ok: ok}
			if ok {
				got.ordinal = ordinal
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: Ordinal(%q) of %q: -want +got:\n%s", tc.reason, tc.args.member, tc.args.cluster, diff)
			}
		})
	}
}

// Every member's name leads back to its ordinal, in its own cluster and in no other.
func TestMemberNameRoundTrip(t *testing.T) {
	t.Parallel()
	clusters := []string{"a", "a-1", "a-1-1", "a-0", "a--1", "a1", "etcd", "etcd-client", strings.Repeat("a", MaxNameLength)}
	for _, name := range clusters {
		for _, ordinal := range []int{0, 1, 9, 10, 11, 100, MaxOrdinal} {
			member := named(name).MemberName(ordinal)
			for _, other := range clusters {
				got, ok := named(other).Ordinal(member)
				if ok != (other == name) || ok && got != ordinal {
					t.Errorf("Ordinal(%q) of %q: got %d, %t; it is member %d of %q", member, other, got, ok, ordinal, name)
				}
			}
		}
	}
}

// The longest names made of the longest name allowed still fit, and one character more would not.
func TestNamesFit(t *testing.T) {
	t.Parallel()
	longest := named(strings.Repeat("a", MaxNameLength))
	made := map[string]string{
		"headless Service":          longest.Name,
		"client Service":            longest.ClientServiceName(),
		"six-digit member":          longest.MemberName(999999),
		"value of a cluster label":  longest.Name,
		"host name of a member":     longest.MemberName(999999),
		"first label of a peer URL": strings.TrimPrefix(strings.Split(longest.PeerURL(longest.MemberName(999999)), ".")[0], "https://"),
	}
	for what, name := range made {
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			t.Errorf("%s %q: %v", what, name, problems)
		}
	}
	if one := named(longest.Name + "a").ClientServiceName(); len(validation.IsDNS1035Label(one)) == 0 {
		t.Errorf("%q would fit as well: MaxNameLength is too small", one)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	c := named("a")
	c.Spec.TLS = &TLS{Client: &ClientTLS{Mode: TLSDisabled}}
	want := []string{"https://a-2.a.default.svc:2380", "http://a-2.a.default.svc:2379"}
	if diff := cmp.Diff(want, []string{c.PeerURL("a-2"), c.ClientURL("a-2")}); diff != "" {
		t.Errorf("URLs of a member: -want +got:\n%s", diff)
	}
}
