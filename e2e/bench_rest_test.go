//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestBenchRest: what healthy clusters cost while nothing happens. The requests are counted where
// they arrive: the API server in its audit log, etcd in its own metrics.
func TestBenchRest(t *testing.T) {
	const (
		clusters = 3
		window   = time.Minute
	)
	s, remove := temporaryStage(t)
	defer remove()
	var all []*api.EtcdCluster
	for n := range clusters {
		c := s.cluster(fmt.Sprintf("db%d", n), 3)
		s.create(c)
		all = append(all, c)
	}
	for _, c := range all {
		s.ready(c)
		s.untilReady(s.watchPods(), 3*clusters)
	}
	s.pass(15 * time.Second) // the last look of each at its members in haste

	asked := map[string]calls{}
	for _, c := range all {
		for _, pod := range s.pods(c) {
			asked[pod.Name] = s.calls(&pod)
		}
	}
	since := time.Now()
	s.pass(window)
	made, err := requests(s.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	var status, lists []float64 // by member, by cluster
	for _, c := range all {
		list, most := 0.0, 0.0
		for _, pod := range s.pods(c) {
			now := s.calls(&pod)
			n := now.status - asked[pod.Name].status
			status, most = append(status, n), max(most, n)
			list += now.memberList - asked[pod.Name].memberList
		}
		lists = append(lists, list)
		if list > most+1 { // one look may have begun before the first count
			t.Errorf("%s: etcd was asked for its members %v times in %v looks", c.Name, list, most)
		}
	}
	if most := slices.Max(status); most > window.Seconds()/10+2 {
		t.Errorf("a member was asked for its status %v times in %s, want one in 10 s", most, window)
	}

	reads, writes, leases := 0, 0, 0
	for _, r := range made {
		switch {
		case !strings.Contains(r.User.Username, ":"+render.InstallNamespace+":"):
		case r.ObjectRef.Resource == "leases" && r.mutates():
			leases++
		case r.mutates():
			writes++
			t.Errorf("at rest: %s", r)
		default:
			reads++
		}
	}
	if leases == 0 {
		t.Error("the audit log has not even the operator's lease")
	}
	fmt.Printf(`
At rest: %d clusters of three members, %s

| requests | |
| --- | ---: |
| writes to the API server for clusters | %d |
| renewals of the operator's one lease | %d |
| other requests to the API server (watches that begin again) | %d |
| Status, for each member | %v to %v |
| MemberList, for each cluster | %v to %v |

`, clusters, window, writes, leases, reads, slices.Min(status), slices.Max(status), slices.Min(lists), slices.Max(lists))
}

// pass lets time pass: that nothing happens can only be seen over time.
func (s *stage) pass(d time.Duration) {
	s.Helper()
	select {
	case <-time.After(d):
	case <-s.Context().Done():
		s.Fatal(context.Cause(s.Context()))
	}
}

// calls are those that a member's etcd has answered, whatever it said.
type calls struct{ status, memberList float64 }

func (s *stage) calls(pod *corev1.Pod) calls {
	s.Helper()
	return calls{
		status:     s.metric(pod, "grpc_server_handled_total", `grpc_method="Status"`),
		memberList: s.metric(pod, "grpc_server_handled_total", `grpc_method="MemberList"`),
	}
}

// metric of a member's etcd, summed over all its series with a label.
func (s *stage) metric(pod *corev1.Pod, name, label string) float64 {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, fmt.Sprintf("http://%s:%d/metrics", pod.Name, api.PortMetrics), nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := podHTTP(s.ns).Do(request)
	if err != nil {
		s.Fatalf("get metrics of %s: %v", pod.Name, err)
	}
	defer func() { _ = response.Body.Close() }() // only read from
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if family, _, _ := strings.Cut(series, "{"); family != name || !strings.Contains(series, label) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.Fatalf("read %s of %s: %v", name, pod.Name, err)
		}
		sum += v
	}
	if err := lines.Err(); err != nil {
		s.Fatalf("read metrics of %s: %v", pod.Name, err)
	}
	return sum
}
