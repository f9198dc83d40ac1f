//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// The data of members is made wrong in the database of a process that is stopped, of the length
// that it had, as a disk or a bug might have left it. All of them have the same log.

const (
	rightValue   = "value: right"
	wrongValue   = "value: wrong"
	anotherValue = "value: WRONG"
)

// wrongness is one way in which members are wrong.
type wrongness struct {
	reason   string
	members  int32
	leader   string // the value that the leader has
	follower string // that of one follower; empty: as the others
	// want is the value that all have in the end, or the reason of the stall.
	want, stalled string
}

var wrongnesses = map[string]wrongness{
	"Leader":   {reason: "the leader accuses those that are right", members: 3, leader: wrongValue, want: rightValue},
	"Follower": {reason: "etcd's accusation is right", members: 3, leader: rightValue, follower: wrongValue, want: rightValue},
	"TwoOfFive": {
		reason:  "one goes after the other, the leadership first",
		members: 5, leader: wrongValue, follower: wrongValue, want: rightValue,
	},
	"TwoAgainstOne": {
		reason:  "two that are wrong in the same way are a quorum: they cannot be told from two that are right",
		members: 3, leader: wrongValue, follower: wrongValue, want: wrongValue,
	},
	"ThreeDifferent": {
		reason:  "which of them is right cannot be told",
		members: 3, leader: wrongValue, follower: anotherValue, stalled: api.ReasonDataDiffers,
	},
}

// wrongRun is a wrongness on an etcd, with etcd's own periodic check or without, and with a restart
// of each follower while the leader is wrong or without: etcd's check at the start ends those that
// differ from it then.
type wrongRun struct {
	wrongness
	version             string
	periodic, restarted bool
}

// TestWrong: of members whose data differs, those go that differ from a quorum, whomever etcd
// accuses, and no other one loses its place or its volume. Where no quorum is equal nothing is
// done.
func TestWrong(t *testing.T) {
	t.Parallel()
	cases := map[string]wrongRun{}
	for name, w := range wrongnesses {
		for _, version := range []string{etcd35, etcd36, etcd37} {
			for n, how := range []string{"", "Checked", "Restarted", "RestartedChecked"} {
				cases[name+how+strings.ReplaceAll(version[:3], ".", "")] = wrongRun{w, version, n%2 == 1, n >= 2}
			}
		}
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version = tc.version
			tc.run(s)
		})
	}
}

func (w wrongRun) run(s *stage) {
	crash := s.operate()
	c := s.cluster("db", w.members)
	// A new member is to get the data of the leader, and not all of the log, from which it would
	// make its own.
	flags := map[string]string{"snapshot-catchup-entries": "5"}
	if w.periodic {
		flags["corrupt-check-time"] = "1s"
	}
	if w.version == etcd35 {
		flags = experimental(flags)
	}
	c.Spec.Options = &api.Options{SnapshotCount: new(int64(100)), Flags: flags}
	contract.Watch(s, c)
	s.create(c)
	etcd := s.ready(c)
	s.put(etcd, "key", rightValue)
	for range 150 {
		s.put(etcd, "other", "value")
	}
	s.flushed(etcd)
	names := namesOf(identityOf(c))
	values := map[string]string{}
	for _, name := range names {
		values[name] = rightValue
	}
	values["db-0"] = w.leader
	if w.follower != "" {
		values["db-1"] = w.follower
	}
	before := identityOf(c)
	claims := s.claimUIDs(c)

	crash() // so that all is as bad as it gets before anything is done about it
	for name, value := range values {
		if value != rightValue {
			s.makeWrong(name, value)
		}
	}
	s.lead(c, "db-0")
	if w.restarted {
		for _, name := range names[1:] {
			s.must(s.hostlet.Kill(s.ns, name))
			s.awaitBack(name)
		}
	} else if w.periodic {
		s.awaitCorrupt(c)
	}
	s.operate()

	if w.stalled != "" {
		var each []string
		for _, name := range names { // one that etcd has ended has to be started again before it is compared
			each = append(each, name+" ("+before.Members[name]+")")
		}
		s.stalledWith(c, w.stalled, each...)
		if diff := cmp.Diff(before, identityOf(c)); diff != "" {
			s.Errorf("%s: members came or went: -want +got:\n%s", w.reason, diff)
		}
		if diff := cmp.Diff(claims, s.claimUIDs(c)); diff != "" {
			s.Errorf("%s: volumes came or went: -want +got:\n%s", w.reason, diff)
		}
		w.decide(s, c)
		return
	}
	maps.DeleteFunc(before.Members, func(name, _ string) bool { return values[name] != w.want })
	maps.DeleteFunc(claims, func(name, _ string) bool { return values[name] != w.want })
	want := slices.Sorted(maps.Keys(before.Members))
	for n := range len(names) - len(want) {
		want = append(want, fmt.Sprintf("db-%d", len(names)+n))
	}
	s.awaitMembers(c, want...)
	s.clean(c, want...)
	got := identityOf(c)
	maps.DeleteFunc(got.Members, func(name, _ string) bool { return values[name] == "" })
	if diff := cmp.Diff(before, got); diff != "" {
		s.Errorf("%s: those that are right changed: -want +got:\n%s", w.reason, diff)
	}
	kept := s.claimUIDs(c)
	maps.DeleteFunc(kept, func(name, _ string) bool { return values[name] == "" })
	if diff := cmp.Diff(claims, kept); diff != "" {
		s.Errorf("%s: volumes of those that are right changed: -want +got:\n%s", w.reason, diff)
	}
	for _, name := range want {
		if got := s.valueAt(c, name); got != w.want {
			s.Errorf("%s: %s has %q in the end, want %q", w.reason, name, got, w.want)
		}
	}
	s.put(s.etcd(c), "another", "value")
}

// decide does what the message tells a person to do: the members that are wrong go, and then the
// alarm.
func (w wrongRun) decide(s *stage, c *api.EtcdCluster) {
	s.Helper()
	for _, name := range []string{"db-0", "db-1"} {
		removeByHand(s, c, name)
	}
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error {
		_, err := etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	}, nil)
	want := []string{"db-2", "db-3", "db-4"}
	s.awaitMembers(c, want...)
	s.clean(c, want...)
	for _, name := range want {
		if got := s.valueAt(c, name); got != rightValue {
			s.Errorf("%s: %s has %q in the end, want %q", w.reason, name, got, rightValue)
		}
	}
}
