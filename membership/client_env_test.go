//go:build env

package membership

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestClientOfThree follows a cluster through its life: the third member comes late, and then two
// are lost.
func TestClientOfThree(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version Version) {
		for _, m := range c.members[:2] {
			m.bootstrap()
		}
		zero := c.members[0].serving()
		client := c.members[0].dial()

		// A member that has never been seen is in the list with its name: that it is listed does
		// not show that it has data.
		listed, err := client.Members(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		names := make([]string, 0, 3)
		for _, m := range listed {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"m-0", "m-1", "m-2"}, names); diff != "" {
			c.Errorf("list before the third has started: -want, +got:\n%s", diff)
		}
		late := c.members[2]
		if says, err := late.dial().Status(c.Context()); err == nil {
			c.Errorf("a member that has not started answers: %+v", says)
		}

		late.bootstrap()
		two := late.serving()
		if two.ClusterID != zero.ClusterID || two.MemberID == zero.MemberID || two.Version != version {
			c.Errorf("the third member says %+v, the first %+v", two, zero)
		}
		n := slices.IndexFunc(listed, func(m Member) bool { return m.ID == two.MemberID })
		if n < 0 || listed[n].Name != "m-2" || !slices.Equal(listed[n].PeerURLs, []string{url(late.peer)}) || listed[n].Learner {
			c.Errorf("the third member %s is not in the list %+v", two.MemberID, listed)
		}

		c.members[1].kill()
		late.kill()
		start := time.Now()
		if listed, err := client.Members(c.Context()); err == nil {
			c.Errorf("without a quorum there is a list: %+v", listed)
		}
		if took := time.Since(start); took > CallTimeout+time.Second {
			c.Errorf("it took %s to find out that there is no quorum", took)
		}
		c.members[0].eventually("it says that there is no leader", func(ctx context.Context) error {
			says, err := client.Status(ctx)
			if err != nil {
				c.Fatalf("without a quorum a member does not say how it is: %v", err)
			}
			if says.Leader != 0 {
				return fmt.Errorf("leader %s", says.Leader)
			}
			return nil
		})
	})
}

// TestClientSeesAlarms: an alarm is raised as etcd itself raises it, and shows in the next status.
func TestClientSeesAlarms(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, _ Version) {
		m := c.members[0]
		m.bootstrap()
		says := m.serving()
		m.raise(etcdserverpb.AlarmType_NOSPACE, says.MemberID)
		got, err := m.dial().Status(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		if diff := cmp.Diff([]Alarm{{AlarmNoSpace, says.MemberID}}, got.Alarms); diff != "" || got.Healthy() {
			c.Errorf("-want, +got:\n%s", diff)
		}
		client := m.dial()
		m.made("disarm another kind", func(ctx context.Context) error { return client.Disarm(ctx, AlarmCorrupt, says.MemberID) })
		m.alarmed(got.Alarms...)
		m.made("disarm", func(ctx context.Context) error { return client.Disarm(ctx, AlarmNoSpace, says.MemberID) })
		m.alarmed()
	})
}
