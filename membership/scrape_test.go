package membership

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// metricsOf a learner that follows, as etcd 3.6.16 writes them, among others.
const metricsOf = `# HELP etcd_server_has_leader Whether or not a leader exists. 1 is existence, 0 is not.
# TYPE etcd_server_has_leader gauge
etcd_server_has_leader 1
# HELP etcd_server_id Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.
# TYPE etcd_server_id gauge
etcd_server_id{server_id="8e9e05c52164694d"} 1
# HELP etcd_server_proposals_applied_total The total number of consensus proposals applied.
# TYPE etcd_server_proposals_applied_total gauge
etcd_server_proposals_applied_total 16
# HELP etcd_server_version Which version is running. 1 for 'server_version' label with current version.
# TYPE etcd_server_version gauge
etcd_server_version{server_version="3.6.16"} 1
# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79e+09
`

// grpcMetrics are there from when etcd serves clients.
const grpcMetrics = `# HELP grpc_server_started_total Total number of RPCs started on the server.
# TYPE grpc_server_started_total counter
grpc_server_started_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 0
`

func TestScrape(t *testing.T) {
	fetching := Endpoint{Fetching: 0x8e9e05c52164694d, Version: etcd36}
	without := func(line string) string { return strings.ReplaceAll(metricsOf, line, "") }
	cases := map[string]struct {
		reason  string
		metrics string
		status  int // 200 by default
		want    Endpoint
		fails   string // what the error says at last
	}{
		"Publishing": {
			reason:  "it follows, and has applied what it was sent",
			metrics: metricsOf,
			want:    Endpoint{Publishing: 0x8e9e05c52164694d, Version: etcd36, Applied: 16},
		},
		"Serving": {
			reason:  "it has published itself, and waits for its first client",
			metrics: metricsOf + grpcMetrics,
		},
		"Serving35": {
			reason:  "in 3.5 the server for its peers has the same metrics",
			metrics: strings.ReplaceAll(metricsOf, "3.6.16", "3.5.35") + grpcMetrics,
			want:    Endpoint{Publishing: 0x8e9e05c52164694d, Version: etcd35, Applied: 16},
		},
		"Leaderless":     {reason: "it follows no leader", metrics: strings.ReplaceAll(metricsOf, "has_leader 1", "has_leader 0"), want: fetching},
		"AppliedNothing": {reason: "it has not got its data yet", metrics: strings.ReplaceAll(metricsOf, "applied_total 16", "applied_total 0"), want: fetching},
		"ServingLeaderless": {
			reason:  "it has served, and answers for itself",
			metrics: strings.ReplaceAll(metricsOf, "has_leader 1", "has_leader 0") + grpcMetrics,
		},
		"NoID": {
			reason: "its identity is not known", metrics: without(`etcd_server_id{server_id="8e9e05c52164694d"} 1` + "\n"),
			fails: "the metrics tell no member ID",
		},
		"NotEtcd":  {reason: "another program has got the address", metrics: "go_goroutines 7\n", fails: `version ""`},
		"Garbage":  {reason: "it is no text of metrics", metrics: "<html>\n", fails: `version ""`},
		"Broken":   {reason: "a line that is read is not as it has to be", metrics: "etcd_server_has_leader {\n", fails: "text format parsing error"},
		"NotFound": {reason: "it has no such page", status: http.StatusNotFound, fails: "404 Not Found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/metrics" {
					t.Errorf("it asked for %s", r.URL.Path)
				}
				if tc.status != 0 {
					w.WriteHeader(tc.status)
				}
				_, _ = w.Write([]byte(tc.metrics)) // a reader that hangs up has said why
			}))
			t.Cleanup(server.Close)
			host, text, _ := net.SplitHostPort(server.Listener.Addr().String())
			port, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Scrape(t.Context(), host, port)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.fails, err)
			}
		})
	}
}
