package render

import (
	"testing"

	api "quorate.dev/api/v1alpha1"
)

// TestReadinessPort: a member is ready when it serves clients, as far as a kubelet can be told so.
func TestReadinessPort(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   *api.Options
		want   string
	}{
		"None":    {reason: "the port that clients use", want: "client"},
		"Flags":   {reason: "other flags change nothing", args: &api.Options{Flags: map[string]string{"cors": "https://x"}}, want: "client"},
		"ByNames": {reason: "the kubelet asks by address, which etcd refuses", args: &api.Options{Flags: map[string]string{"host-whitelist": "db"}}, want: "metrics"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{Spec: api.EtcdClusterSpec{Options: tc.args}}
			withoutTLS(c)
			if got := readinessProbe(c).HTTPGet.Port.StrVal; got != tc.want {
				t.Errorf("%s: want the port %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
