//go:build env

package membership

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// TestClientResizes follows a cluster of one that becomes two and one again. Whatever was done once
// is no error when it is asked for again, and what etcd refuses for now is ErrLater.
func TestClientResizes(t *testing.T) {
	anyVersion(t, 2, func(c *etcds, _ Version) {
		zero, one := c.members[0], c.members[1]
		zero.bootstrapAlone()
		first := zero.serving().MemberID
		client := zero.dial()

		learner := zero.addLearner(one)
		zero.made("add the learner again", func(ctx context.Context) error { return client.AddLearner(ctx, url(one.peer)) })
		zero.lists(Member{ID: first, Name: "m-0", PeerURLs: []string{url(zero.peer)}}, Member{ID: learner, PeerURLs: []string{url(one.peer)}, Learner: true})
		if err := client.Promote(c.Context(), learner); !errors.Is(err, ErrLater) {
			c.Errorf("promote a learner that has not started: %v", err)
		}

		one.join()
		if says := one.serving(); says.MemberID != learner || !says.Learner {
			c.Errorf("the learner %s says %+v", learner, says)
		}
		zero.made("promote", func(ctx context.Context) error { return client.Promote(ctx, learner) })
		zero.made("promote again", func(ctx context.Context) error { return client.Promote(ctx, learner) })
		both := []Member{{ID: first, Name: "m-0", PeerURLs: []string{url(zero.peer)}}, {ID: learner, Name: "m-1", PeerURLs: []string{url(one.peer)}}}
		zero.lists(both...)

		follower := one.dial()
		if err := follower.MoveLeader(c.Context(), learner); !errors.Is(err, ErrLater) {
			c.Errorf("move the leadership, asked of a follower: %v", err)
		}
		zero.made("move the leadership", func(ctx context.Context) error { return client.MoveLeader(ctx, learner) })
		one.leads()
		one.made("move the leadership back", func(ctx context.Context) error { return follower.MoveLeader(ctx, first) })
		zero.leads()

		zero.made("remove", func(ctx context.Context) error { return client.Remove(ctx, learner) })
		zero.made("remove again", func(ctx context.Context) error { return client.Remove(ctx, learner) })
		zero.lists(both[0])
		if err := client.Promote(c.Context(), learner); err == nil || errors.Is(err, ErrLater) {
			c.Errorf("promote a member that was removed: %v", err)
		}
	})
}

// TestClientDisarms: under the alarm CORRUPT etcd takes no writes and goes on to serve reads, right
// or wrong. It lists its members as ever, and lets one be removed and the alarm be taken back.
func TestClientDisarms(t *testing.T) {
	anyVersion(t, 2, func(c *etcds, _ Version) {
		zero, one := c.members[0], c.members[1]
		zero.bootstrapAlone()
		zero.serving()
		client := zero.dial()
		id := zero.addLearner(one)

		zero.put("key", "before")
		zero.raise(etcdserverpb.AlarmType_CORRUPT, id)
		zero.alarmed(Alarm{AlarmCorrupt, id})
		if _, err := zero.kv().Put(c.Context(), "key", "value"); !errors.Is(err, rpctypes.ErrCorrupt) || zero.get("key") != "before" {
			c.Errorf("a write while it is not known what is right: %v; read: %q", err, zero.get("key"))
		}
		zero.made("remove", func(ctx context.Context) error { return client.Remove(ctx, id) })
		zero.alarmed(Alarm{AlarmCorrupt, id}) // it does not go with the member
		zero.made("disarm", func(ctx context.Context) error { return client.Disarm(ctx, AlarmCorrupt, id) })
		zero.made("disarm again", func(ctx context.Context) error { return client.Disarm(ctx, AlarmCorrupt, id) })
		zero.alarmed()
		zero.put("key", "after")
	})
}

// made makes a change, which etcd may refuse for now. What it refuses for good fails the test at
// once.
func (m *etcd) made(what string, change func(context.Context) error) {
	m.Helper()
	m.eventually(what, func(ctx context.Context) error {
		err := change(ctx)
		if err != nil && !errors.Is(err, ErrLater) {
			m.Fatalf("%s: %v", what, err)
		}
		return err
	})
}

// addLearner tells the member of another one, and returns that one's ID.
func (m *etcd) addLearner(other *etcd) ID {
	m.Helper()
	c := m.dial()
	m.made("add a learner", func(ctx context.Context) error { return c.AddLearner(ctx, url(other.peer)) })
	listed, err := c.Members(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	for _, l := range listed {
		if l.PeerURLs[0] == url(other.peer) {
			return l.ID
		}
	}
	m.Fatalf("the learner is not in the list %+v", listed)
	return 0
}

// lists these members, in any order, and no others.
func (m *etcd) lists(want ...Member) {
	m.Helper()
	listed, err := m.dial().Members(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	byID := func(members []Member) map[ID]Member {
		is := map[ID]Member{}
		for _, l := range members {
			is[l.ID] = l
		}
		return is
	}
	if diff := cmp.Diff(byID(want), byID(listed)); diff != "" {
		m.Errorf("list: -want, +got:\n%s", diff)
	}
}

func (m *etcd) leads() {
	m.Helper()
	c := m.dial()
	m.eventually(m.name+" leads", func(ctx context.Context) error {
		says, err := c.Status(ctx)
		if err == nil && says.Leader != says.MemberID {
			err = fmt.Errorf("leader %s", says.Leader)
		}
		return err
	})
}

// raise an alarm as etcd itself does.
func (m *etcd) raise(alarm etcdserverpb.AlarmType, of ID) {
	m.Helper()
	_, err := etcdserverpb.NewMaintenanceClient(m.kv().ActiveConnection()).Alarm(m.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: uint64(of), Alarm: alarm,
	})
	if err != nil {
		m.Fatal(err)
	}
}

// alarmed: the member's status has these alarms, and no others.
func (m *etcd) alarmed(want ...Alarm) {
	m.Helper()
	says, err := m.dial().Status(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	if diff := cmp.Diff(want, says.Alarms); diff != "" {
		m.Errorf("alarms: -want, +got:\n%s", diff)
	}
}
