//go:build env

package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// experimental are flags as 3.5 calls them.
func experimental(flags map[string]string) map[string]string {
	of := map[string]string{}
	for name, value := range flags {
		of["experimental-"+name] = value
	}
	return of
}

// flushed has every member write to its disk what it has in memory: etcd does so ten times a
// second, and to defragment.
func (s *stage) flushed(etcd *clientv3.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for _, endpoint := range etcd.Endpoints() {
		_, err := etcd.Defragment(ctx, endpoint)
		s.must(err)
	}
}

// makeWrong changes the value in the database of a member, whose process is killed for it. It
// starts without etcd's check, as one does whose data went wrong while it ran.
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
	etcd, dial := s.etcd(c), dialer(s.clientTLS(c))
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

// valueAt is what a member itself has.
func (s *stage) valueAt(c *api.EtcdCluster, name string) string {
	s.Helper()
	pod := &corev1.Pod{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, pod))
	etcd, err := dialer(s.clientTLS(c))(endpoint(c)(pod))
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
