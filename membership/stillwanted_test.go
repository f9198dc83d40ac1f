package membership

import "testing"

// TestStillWanted: what is given up is what was tried.
func TestStillWanted(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   Instance
		want   bool
	}{
		"Tried":     {reason: "its Pod runs it, and that is what the spec asks for", args: Instance{Volume: Volume{Version: etcd36, Next: etcd37}, Pod: Pod{Version: etcd37}}, want: true},
		"NoPod":     {reason: "the API server takes none", args: Instance{Volume: Volume{Version: etcd36, Next: etcd37}}, want: true},
		"Other":     {reason: "the spec asks for something else by now", args: Instance{Volume: Volume{Version: etcd36, Next: etcd37}, Pod: Pod{Version: etcd37, Change: ChangeImage}}},
		"Resources": {reason: "what would come while it runs is not why it does not come up", args: Instance{Volume: Volume{Version: etcd36, Next: etcd37}, Pod: Pod{Version: etcd37, Change: ChangeResources}}, want: true},
		"ResourcesTried": {
			reason: "they were tried, and the spec asks for others by now",
			args:   Instance{Volume: Volume{Version: etcd36}, Pod: Pod{Version: etcd36, Change: ChangeResources, Outdated: true, Untried: []string{"resources"}}},
		},
		"HalfBack": {
			reason: "its put-back was interrupted, and the spec asks for what ran before, with other resources, which was not tried",
			args:   Instance{Volume: Volume{Version: etcd36, Next: etcd37}, Pod: Pod{Version: etcd36, Change: ChangeResources}},
		},
		"Options": {reason: "the version is as before, and they are new", args: Instance{Volume: Volume{Version: etcd36, Next: etcd36}, Pod: Pod{Version: etcd36, Change: ChangeImage, Untried: []string{"options"}}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.args.StillWanted(); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
