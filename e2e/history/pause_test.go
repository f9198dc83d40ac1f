package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	p := pauses{last: at(0)}
	var got []time.Duration
	for _, second := range []int{1, 2, 9, 10} { // seven seconds without one
		p.acknowledged(at(second))
	}
	got = append(got, p.take(at(11)))
	p.acknowledged(at(13))
	got = append(got, p.take(at(17)), p.take(at(18))) // one that lasts still, and goes on
	if diff := cmp.Diff([]time.Duration{7 * time.Second, 4 * time.Second, 5 * time.Second}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
