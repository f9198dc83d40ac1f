//go:build env

package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
	"quorate.dev/membership"
)

// The data of members is made wrong in the database of a process that is stopped, of the length that
// it had, as a disk or a bug might have left it. All of them have the same log.

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
		reason:  "two that are wrong in the same way are a quorum: nobody can tell them from two that are right",
		members: 3, leader: wrongValue, follower: wrongValue, want: wrongValue,
	},
	"ThreeDifferent": {
		reason:  "which of them is right nobody can tell",
		members: 3, leader: wrongValue, follower: anotherValue, stalled: api.ReasonDataDiffers,
	},
}

// wrongRun is a wrongness on an etcd, with etcd's own periodic check or without, and with a restart of
// each follower while the leader is wrong or without: etcd's check at the start ends those that differ
// from it then.
type wrongRun struct {
	wrongness
	version             string
	periodic, restarted bool
}

// TestWrong: of members whose data differs, those go that differ from a quorum, whomever etcd accuses,
// and no other one loses its place or its volume. Where no quorum is equal nothing is done.
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
	for name, tc := range share.Of(t, cases, 5) {
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
	if w.periodic {
		flag := "corrupt-check-time"
		if w.version == etcd35 {
			flag = "experimental-corrupt-check-time"
		}
		c.Spec.Options = &api.Options{Flags: map[string]string{flag: "1s"}}
	}
	contract.Watch(s, c)
	s.create(c)
	etcd := s.ready(c)
	s.put(etcd, "key", rightValue)
	s.written(etcd)
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
		message := s.stalled(c, w.stalled)
		for _, name := range names {
			if !strings.Contains(message, name+" ("+before.Members[name]+")") {
				s.Errorf("%s: the message does not name %s: %s", w.reason, name, message)
			}
		}
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
		if got := s.says(c, name); got != w.want {
			s.Errorf("%s: %s has %q in the end, want %q", w.reason, name, got, w.want)
		}
	}
	s.put(s.etcd(c), "another", "value")
}

// decide does what the message tells a person to do: the members that are wrong go, and then the alarm.
func (w wrongRun) decide(s *stage, c *api.EtcdCluster) {
	s.Helper()
	for _, name := range []string{"db-0", "db-1"} {
		removeByHand(s, c, name)
	}
	s.byHand(func(ctx context.Context) error {
		_, err := s.etcd(c).AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	}, nil)
	want := []string{"db-2", "db-3", "db-4"}
	s.awaitMembers(c, want...)
	s.clean(c, want...)
	for _, name := range want {
		if got := s.says(c, name); got != rightValue {
			s.Errorf("%s: %s has %q in the end, want %q", w.reason, name, got, rightValue)
		}
	}
}

// written has every member write to its disk what it has in memory: etcd does so ten times a second, and
// to defragment.
func (s *stage) written(etcd *clientv3.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for _, endpoint := range etcd.Endpoints() {
		_, err := etcd.Defragment(ctx, endpoint)
		s.must(err)
	}
}

// makeWrong changes the value in the database of a member, whose process is killed for it. It starts
// without etcd's check, as one does whose data went wrong while it ran.
func (s *stage) makeWrong(name, value string) {
	s.Helper()
	pod := &corev1.Pod{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, pod))
	s.change(pod, func() {
		key := api.AnnotationCheckAtStart
		pod.Annotations[key] = strings.ReplaceAll(strings.ReplaceAll(pod.Annotations[key], "InitialCorruptCheck=true", "InitialCorruptCheck=false"), "corrupt-check=true", "corrupt-check=false")
	})
	s.must(s.hostlet.Spoil(s.Context(), s.ns, name, func(dir string) error { return overwrite(dir, value) }))
	s.awaitBack(name)
}

// overwrite the value in a database.
func overwrite(dir, value string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "member", "snap", "db"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%d databases in %s, error %w", len(files), dir, err)
	}
	db, err := bbolt.Open(files[0], 0o600, &bbolt.Options{Timeout: patience})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		entries := map[string][]byte{}
		if err := bucket.ForEach(func(k, v []byte) error {
			if bytes.Contains(v, []byte(rightValue)) {
				entries[string(k)] = bytes.ReplaceAll(v, []byte(rightValue), []byte(value))
			}
			return nil
		}); err != nil {
			return err
		}
		if len(entries) != 1 {
			return fmt.Errorf("%d entries have the value", len(entries))
		}
		for k, v := range entries {
			if err := bucket.Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

// awaitBack waits until the Pod of a member is back: it was started again, and is ready, or etcd's
// check has ended it again.
func (s *stage) awaitBack(name string) {
	s.Helper()
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = name, s.ns
	s.awaitPod(pod, "back", func() bool {
		status := pod.Status.ContainerStatuses
		if len(status) == 0 || status[0].RestartCount == 0 {
			return false
		}
		exit := status[0].LastTerminationState.Terminated
		if status[0].State.Terminated != nil {
			exit = status[0].State.Terminated
		}
		return status[0].State.Running != nil && s.answers(pod) || exit != nil && strings.Contains(exit.Message, "found data inconsistency with peers")
	})
}

func (s *stage) answers(pod *corev1.Pod) bool {
	etcd, err := membership.Dial(pod.Status.PodIP, api.PortClient)
	if err != nil {
		return false
	}
	defer func() { _ = etcd.Close() }() // it was only read from
	_, err = etcd.Status(s.Context())
	return err == nil
}

// lead has a member lead.
func (s *stage) lead(c *api.EtcdCluster, name string) {
	s.Helper()
	want := memberID(c, name)
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error {
		for _, endpoint := range etcd.Endpoints() {
			status, err := etcd.Status(ctx, endpoint)
			switch {
			case err != nil || status.Leader == 0:
				continue
			case status.Leader == want:
				return nil
			case status.Leader == status.Header.MemberId:
				leader, err := dial(endpoint)
				if err != nil {
					return err
				}
				_, err = leader.MoveLeader(ctx, want)
				return errors.Join(err, leader.Close(), errNotYet)
			}
		}
		return errNotYet
	}, nil)
}

var errNotYet = errors.New("it does not lead yet")

// awaitCorrupt waits until etcd has raised the alarm.
func (s *stage) awaitCorrupt(c *api.EtcdCluster) {
	s.Helper()
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error {
		alarms, err := etcd.AlarmList(ctx)
		if err == nil && len(alarms.Alarms) == 0 {
			err = errors.New("no alarm yet")
		}
		return err
	}, nil)
}

// says is what a member itself has.
func (s *stage) says(c *api.EtcdCluster, name string) string {
	s.Helper()
	pod := &corev1.Pod{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, pod))
	etcd, err := dial(endpoint(pod))
	s.must(err)
	defer func() { _ = etcd.Close() }() // it was only read from
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	got, err := etcd.Get(ctx, "key", clientv3.WithSerializable())
	s.must(err)
	if len(got.Kvs) != 1 {
		s.Fatalf("%s of %s has %d values", name, c.Name, len(got.Kvs))
	}
	return string(got.Kvs[0].Value)
}

func (s *stage) claimUIDs(c *api.EtcdCluster) map[string]string {
	s.Helper()
	uids := map[string]string{}
	for _, claim := range s.claims(c) {
		uids[claim.Name] = string(claim.UID)
	}
	return uids
}
