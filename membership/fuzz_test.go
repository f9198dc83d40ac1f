package membership

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// FuzzVersion: a version that is read can be shown in the status, and read again.
func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"3.6.16", "v3.7.3", "3.7.0-rc.1", "03.6.1", "-1.0.0", "9999.9999.9999", "3.6.9223372036854775807", "vv3.6.1", "3.6. 1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseVersion(text)
		if err != nil {
			if len(err.Error()) > 1024 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		again, err := ParseVersion(v.String())
		if v != (Version{}) && (err != nil || again != v) || len(v.String()) > 16 {
			t.Errorf("%q is read as %+v, and shown as %q (%v)", text, v, v, err)
		}
	})
}

// FuzzMetrics: whatever the metrics say, they are read, or an error says why not.
func FuzzMetrics(f *testing.F) {
	f.Add(metricsOf)
	f.Add(metricsOf + grpcMetrics)
	f.Add(strings.ReplaceAll(metricsOf, " 16\n", " NaN\n"))
	f.Add(strings.ReplaceAll(metricsOf, " 16\n", " -1e999\n"))
	f.Add(strings.ReplaceAll(metricsOf, "gauge", "histogram"))
	f.Add("etcd_server_version{server_version=\"\xff\"} 1\n# TYPE etcd_server_id\n")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := readMetrics(strings.NewReader(text))
		if err == nil && e.Version != (Version{}) && e.Member() == 0 {
			t.Errorf("it tells of no member: %+v", e)
		}
	})
}

// FuzzAnswers: what a member says of alarms and members is taken within bounds.
func FuzzAnswers(f *testing.F) {
	f.Add("memberID:10276657743932975437 alarm:NOSPACE \nalarm:CORRUPT ", "m-0", "http://a:2380\nhttp://b:2380", uint64(1))
	f.Add("memberID:99999999999999999999 alarm:NOSPACE", "", "", uint64(0))
	f.Add(strings.Repeat("alarm:CORRUPT", 1000), "\xff", "\x00", uint64(1<<63))
	f.Fuzz(func(t *testing.T, remarks, name, urls string, id uint64) {
		if n := len(alarms(strings.Split(remarks, "\n"))); n > mostAlarms {
			t.Errorf("%d alarms", n)
		}
		m := member(&etcdserverpb.Member{ID: id, Name: name, PeerURLs: strings.Split(urls, "\n")})
		step, _ := unmanagedMember(Desired{}, Observed{Members: []Member{m}, Reach: ReachQuorum})
		if len(step.Message) > 1024 {
			t.Errorf("the message has %d bytes", len(step.Message))
		}
	})
}
