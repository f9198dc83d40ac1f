//go:build env

package membership

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests of this file hold etcd to what the rules and the exploration build on: a member that is
// told --initial-cluster-state=existing with an initial cluster of itself alone goes on where there
// is data, and exits where there is none, so that no member ever starts empty under an identity
// that had data.

func TestFenceWithData(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, _ Version) {
		m := c.members[0]
		m.bootstrap()
		before := m.serving()
		m.put("key", "value")
		m.kill()

		m.resume()
		sameMember(m, before, "resumed")
		m.kill()

		// What is written in the data counts, whatever the arguments say, those of another first
		// start too.
		m.start("new", m.self()+",m-1="+url(freePort(c.T)), "another")
		sameMember(m, before, "told to bootstrap")
	})
}

func sameMember(m *etcd, before Endpoint, how string) {
	m.Helper()
	after := m.serving()
	if after.ClusterID != before.ClusterID || after.MemberID != before.MemberID || m.get("key") != "value" {
		m.Errorf("%s over its data it is %s of %s and has %q, before it was %s of %s", how, after.MemberID, after.ClusterID, m.get("key"), before.MemberID, before.ClusterID)
	}
}

func TestFenceAlone(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, _ Version) {
		m := c.members[0]
		m.bootstrap()
		m.serving()
		m.wipe()
		refuses(m, "the first time")
		refuses(m, "when its container starts again")
	})
}

func TestFenceInACluster(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, _ Version) {
		c.form()
		c.members[0].put("key", "value")
		before, err := c.members[0].dial().Members(c.Context())
		if err != nil {
			c.Fatal(err)
		}

		c.members[2].wipe()
		refuses(c.members[2], "the first time")
		refuses(c.members[2], "when its container starts again")

		c.members[0].serving()
		after, err := c.members[0].dial().Members(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" || c.members[1].get("key") != "value" {
			c.Errorf("the other members have changed: -before, +after:\n%s", diff)
		}
	})
}

// TestFenceOfJoiner: a member that has joined is told only of itself from there on, like any other.
// While it was told of all it would have started empty under its ID, which as a voter it must not:
// so it is told before it becomes one.
func TestFenceOfJoiner(t *testing.T) {
	anyVersion(t, 2, func(c *etcds, _ Version) {
		zero, one := c.members[0], c.members[1]
		zero.bootstrapAlone()
		zero.serving()
		zero.put("key", "value")
		id := zero.addLearner(one)
		one.join()
		joined := one.serving()
		one.kill()

		one.resume()
		if says := one.serving(); says.MemberID != id || says.ClusterID != joined.ClusterID || !says.Learner {
			c.Errorf("resumed over its data, the learner %s of %s says %+v", id, joined.ClusterID, says)
		}
		one.wipe()
		refuses(one, "the first time")
		refuses(one, "when its container starts again")
		if zero.get("key") != "value" {
			c.Error("the other member has changed")
		}
	})
}

// TestFenceBeforeData: a learner that runs and has got no data yet, since there is no leader, has
// written down its identity. Told from then on only of itself, and to check its data, it is the
// same after a crash, and gets its data when there is a leader again.
func TestFenceBeforeData(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version Version) {
		c.form()
		c.members[0].put("key", "value")
		late := c.newcomer()
		id := c.members[0].addLearner(late)
		c.members[1].kill()
		c.members[2].kill()

		check := []string{"--feature-gates=InitialCorruptCheck=true"}
		if version.Minor == 5 {
			check = []string{"--experimental-initial-corrupt-check=true"}
		}
		want := Endpoint{Fetching: id, Version: version}
		late.start("existing", c.all()+","+late.self(), "first")
		late.tells(want)
		late.kill()
		c.flags = check
		late.resume()
		late.tells(want)
		late.kill()
		late.resume() // over what it has had when it was told so

		c.flags = nil
		c.members[1].resume()
		c.members[2].resume()
		if says := late.serving(); says.MemberID != id || !says.Learner {
			c.Errorf("the learner %s says %+v", id, says)
		}
		c.members[0].eventually("the learner is promoted", func(ctx context.Context) error {
			return c.members[0].dial().Promote(ctx, id)
		})
		late.eventually("it knows that it is a voter", func(ctx context.Context) error {
			says, err := late.dial().Status(ctx)
			if err == nil && says.Learner {
				err = fmt.Errorf("it is a learner")
			}
			return err
		})
		if got := late.get("key"); got != "value" {
			c.Errorf("it has %q", got)
		}
		late.wipe()
		refuses(late, "the first time")
	})
}

// tells waits until the metrics of a member tell this of it.
func (m *etcd) tells(want Endpoint) {
	m.Helper()
	m.eventually(fmt.Sprintf("its metrics tell %+v", want), func(ctx context.Context) error {
		got, err := Scrape(ctx, "127.0.0.1", m.metrics)
		if err == nil && !cmp.Equal(want, got) {
			err = fmt.Errorf("they tell %+v", got)
		}
		return err
	})
}

// wipe kills the member and takes its data.
func (m *etcd) wipe() {
	m.Helper()
	m.kill()
	if err := os.RemoveAll(filepath.Join(m.dir, "data")); err != nil {
		m.Fatal(err)
	}
}

// refuses: resumed without data, it exits by itself, for this reason, and no client gets an answer
// meanwhile.
func refuses(m *etcd, when string) {
	m.Helper()
	m.resume()
	c, p := m.dial(), m.process
	m.eventually("it has exited "+when, func(ctx context.Context) error {
		if says, err := c.Status(ctx); err == nil {
			m.Fatalf("%s an empty member serves: %+v", when, says)
		}
		select {
		case <-p.ended:
			return nil
		default:
			return fmt.Errorf("it still runs")
		}
	})
	log := p.log.String()
	if p.cmd.ProcessState.Success() || !strings.Contains(log, "cannot fetch cluster info from peer urls") {
		m.Errorf("%s it has exited with %s:\n%s", when, p.cmd.ProcessState, log)
	}
	m.process = nil
}
