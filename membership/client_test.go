package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestAlarms(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string // as etcd's status has them
		want   []Alarm
	}{
		"None": {reason: "A healthy member has no remarks"},
		"NoSpace": {
			reason: "As etcd prints its protocol buffer",
			args:   []string{"memberID:10276657743932975437 alarm:NOSPACE "},
			want:   []Alarm{{AlarmNoSpace, 0x8e9e05c52164694d}},
		},
		"Both": {
			reason: "In an order of ours, each once",
			args:   []string{"memberID:2 alarm:NOSPACE ", "memberID:2 alarm:CORRUPT ", "memberID:1 alarm:NOSPACE ", "memberID:2 alarm:NOSPACE "},
			want:   []Alarm{{AlarmCorrupt, 2}, {AlarmNoSpace, 1}, {AlarmNoSpace, 2}},
		},
		"NobodyKnowsWhose": {
			reason: "A zero member is left out: etcd found that data differ, and not whose is wrong",
			args:   []string{"alarm:CORRUPT "},
			want:   []Alarm{{AlarmCorrupt, 0}},
		},
		"OtherWords": {reason: "That there is no leader is no alarm", args: []string{"etcdserver: no leader"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, alarms(tc.args)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	listed := &etcdserverpb.Member{ID: 7, Name: "m-0", PeerURLs: []string{"http://b:2380", "http://a:2380"}, IsLearner: true}
	want := Member{ID: 7, Name: "m-0", PeerURLs: []string{"http://a:2380", "http://b:2380"}, Learner: true}
	if diff := cmp.Diff(want, member(listed)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if listed.PeerURLs[0] != "http://b:2380" {
		t.Error("etcd's answer has changed")
	}
}
