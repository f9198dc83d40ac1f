package reconcile

import (
	"net/http"
	"sync"
	"time"
)

// ServerTime tells what time it is by the clock of the API server, as the Date of its latest answer
// says it. The times that the API server writes into objects (managedFields) are compared with it:
// the clock of the node on which this process runs says nothing about them. The zero ServerTime
// knows no time yet.
type ServerTime struct {
	mu       sync.Mutex
	date, at time.Time // at is on the monotonic clock of this process
}

// Over has the answers that come by a transport noted, for rest.Config.Wrap.
func (s *ServerTime) Over(transport http.RoundTripper) http.RoundTripper {
	return noting{transport, s}
}

type noting struct {
	http.RoundTripper
	time *ServerTime
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.time.note(response.Header.Get("Date"), time.Now())
	}
	return response, err
}

func (s *ServerTime) note(header string, now time.Time) {
	date, err := http.ParseTime(header)
	if err != nil { // a proxy has taken it out
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.date, s.at = date, now
}

// now is the time of the API server, which may be up to a second too early; false while none is
// known.
func (s *ServerTime) now(now time.Time) (time.Time, bool) {
	if s == nil {
		return time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.date.Add(now.Sub(s.at)), !s.at.IsZero()
}

// Skew is how far the clock of this process is ahead of that of the API server, or behind it (less
// than 0), where that is more than certificates and backups bear; else 0, as where it is not known.
func (s *ServerTime) Skew(now time.Time) time.Duration {
	server, known := s.now(now)
	skew := now.Sub(server).Round(time.Minute)
	if !known || skew.Abs() <= mostSkew {
		return 0
	}
	return skew
}
