package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scraper reads from the metrics of a member, at its metrics port, how far it has come before it
// serves clients (Endpoint.Fetching and Endpoint.Publishing). The zero Endpoint means that it
// serves them, which the metrics tell from 3.6 on. In 3.5 they do not, and a member that answers at
// its client port is further than they say.
type Scraper func(ctx context.Context, host string, port int) (Endpoint, error)

// Scrape is the Scraper of real members. It has CallTimeout, too.
func Scrape(ctx context.Context, host string, port int) (Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	address := net.JoinHostPort(host, strconv.Itoa(port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return Endpoint{}, fmt.Errorf("scrape etcd %s: %w", address, err)
	}
	response, err := scraper.Do(request)
	if err != nil {
		return Endpoint{}, fmt.Errorf("scrape etcd %s: %w", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Endpoint{}, fmt.Errorf("scrape etcd %s: %s", address, response.Status)
	}
	e, err := readMetrics(response.Body)
	if err != nil {
		return Endpoint{}, fmt.Errorf("scrape etcd %s: %w", address, err)
	}
	return e, nil
}

// scraper keeps no connection: few members are asked, none of them at rest, and net/http logs what
// a member sends over a connection that is kept. An attempt to connect goes on when the request is
// given up, and so has a time-out of its own. It goes by no proxy, and nowhere else than to the
// member.
var scraper = &http.Client{
	Transport: &http.Transport{
		DialContext:       (&net.Dialer{Timeout: CallTimeout}).DialContext,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: mostHeader,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// readMetrics reads the metrics of a member: server/etcdserver/metrics.go, where the names are the
// same in 3.5, 3.6 and 3.7. What it has applied shows that it has been given the log, or a snapshot
// of it, which is on its disk before (applyAll in server/etcdserver/server.go).
func readMetrics(metrics io.Reader) (Endpoint, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	read, err := onlyRead(metrics)
	if err != nil {
		return Endpoint{}, err
	}
	families, err := parser.TextToMetricFamilies(read)
	if err != nil {
		return Endpoint{}, err
	}
	label := func(family, label string) string {
		for _, m := range families[family].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && m.GetGauge().GetValue() == 1 {
					return l.GetValue()
				}
			}
		}
		return ""
	}
	gauge := func(family string) float64 {
		for _, m := range families[family].GetMetric() {
			return m.GetGauge().GetValue()
		}
		return 0
	}
	version, err := ParseVersion(label("etcd_server_version", "server_version"))
	if err != nil {
		return Endpoint{}, err
	}
	id, applied := ParseID(label("etcd_server_id", "server_id")), gauge("etcd_server_proposals_applied_total")
	if id == 0 {
		return Endpoint{}, errors.New("the metrics tell no member ID")
	}
	serves := tellsServing(version) && families["grpc_server_started_total"] != nil
	switch {
	case serves:
		return Endpoint{}, nil
	case gauge("etcd_server_has_leader") != 1 || applied < 1:
		return Endpoint{Fetching: id, Version: version}, nil
	default:
		return Endpoint{Publishing: id, Version: version, Applied: uint64(applied)}, nil
	}
}

// tellsServing reports whether the metrics of that version show that clients are served: the
// counters of gRPC are there, at zero, from when its server is made, and that is when the member
// has published itself (serve in server/embed/serve.go). 3.5 has such a server for its peers as
// well, from the start (servePeers in server/embed/etcd.go).
func tellsServing(v Version) bool { return v.Minor >= 6 }

// Silent reports whether the member is known to serve no clients, so that its answer need not be
// waited for.
func (e Endpoint) Silent() bool { return e.Member() != 0 && !e.Answered() && tellsServing(e.Version) }
