//go:build env

package membership

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestPromotedBeforeItServes: a learner that needs a snapshot misses, about every second time, that
// its name was published. Its metrics tell that it follows, it is promoted, and its vote counts
// before it serves any client.
func TestPromotedBeforeItServes(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version Version) {
		catchUp := "--snapshot-catchup-entries=1"
		if version.Minor == 5 {
			catchUp = "--experimental-snapshot-catchup-entries=1"
		}
		c.flags = []string{"--snapshot-count=1", catchUp} // a new member needs a snapshot
		for _, m := range c.members {
			m.bootstrap()
		}
		zero := c.members[0].serving()
		const tries = 40
		for range tries {
			c.members[0].put("key", "value")
			late := c.joins()
			e := late.publishesOrServes()
			if e.Publishing == 0 {
				c.removes(late)
				continue
			}
			if e.Version != version || e.Applied == 0 || e.Answered() {
				c.Errorf("its metrics say %+v", e)
			}
			c.members[0].eventually("the learner is promoted", func(ctx context.Context) error {
				return c.members[0].dial().Promote(ctx, e.Publishing)
			})
			if says, err := late.dial().Status(c.Context()); err == nil {
				t.Logf("it serves already: %+v", says) // on a machine that is slow
			}
			c.members[1].kill()
			c.members[2].kill()
			c.members[2].resume() // without the newcomer two of four voters are no quorum
			c.members[2].serving()
			c.members[2].put("key", "later")
			if says := late.serving(); says.MemberID != e.Publishing || says.ClusterID != zero.ClusterID || says.Learner {
				c.Errorf("it serves as %+v, and has published %s", says, e.Publishing)
			}
			if got := late.get("key"); got != "later" {
				c.Errorf("it has %q", got)
			}
			if e, err := Scrape(c.Context(), "127.0.0.1", late.metrics); err != nil || (e.Publishing == 0) != tellsServing(version) {
				c.Errorf("the metrics of one that serves say %+v, %v", e, err)
			}
			return
		}
		c.Errorf("void: of %d learners none missed that its name was published", tries)
	})
}

// joins adds a learner, and starts it.
func (c *etcds) joins() *etcd {
	c.Helper()
	late := c.newcomer()
	c.members[0].eventually("a learner is added", func(ctx context.Context) error {
		return c.members[0].dial().AddLearner(ctx, url(late.peer))
	})
	late.start("existing", c.all()+","+late.self(), "first")
	return late
}

// newcomer is a member to come.
func (c *etcds) newcomer() *etcd {
	c.Helper()
	late := &etcd{etcds: c, name: name(len(c.members)), client: freePort(c.T), peer: freePort(c.T), metrics: freePort(c.T), dir: c.TempDir()}
	c.Cleanup(late.kill)
	return late
}

// removes a learner again.
func (c *etcds) removes(late *etcd) {
	c.Helper()
	says := late.serving()
	c.members[0].eventually("the learner is removed", func(ctx context.Context) error {
		return c.members[0].dial().Remove(ctx, says.MemberID)
	})
	late.kill()
}

// publishesOrServes is what is seen first of a learner: its metrics, while it does not answer, or
// that it answers.
func (m *etcd) publishesOrServes() (seen Endpoint) {
	m.Helper()
	const answers = 200 * time.Millisecond
	c := m.dial()
	m.eventually(m.name+" publishes its name, or serves", func(ctx context.Context) (err error) {
		published, err := Scrape(ctx, "127.0.0.1", m.metrics)
		switch {
		case err != nil:
			return err
		case published.Fetching != 0:
			return fmt.Errorf("it has not got its data yet")
		case published.Silent():
			seen = published
			return nil
		}
		asking, enough := context.WithTimeout(ctx, answers)
		defer enough()
		if seen, err = c.Status(asking); err != nil && published.Publishing != 0 {
			seen, err = published, nil
		}
		return err
	})
	return seen
}
