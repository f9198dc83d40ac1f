//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/share"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// fullness is a database that has reached its quota, and what a person does about it.
type fullness struct {
	reason  string
	history bool     // what fills it is old revisions of one key
	says    []string // the message of the stall
	room    func(s *stage, c *api.EtcdCluster)
}

var fullnesses = map[string]fullness{
	"Raised": {
		reason: "live data needs a higher quota",
		says:   []string{"NOSPACE", "of 16 MiB", "raise spec.options.quotaBackendSize", "32Mi"},
		room: func(s *stage, c *api.EtcdCluster) {
			s.change(c, func() { c.Spec.Options.QuotaBackendSize = new(resource.MustParse("32Mi")) })
		},
	},
	"Grown": {
		reason: "the volumes grow before the quota that needs it",
		says:   []string{"NOSPACE", "raise spec.options.quotaBackendSize"},
		room: func(s *stage, c *api.EtcdCluster) {
			s.change(c, func() {
				c.Spec.Storage.Size = resource.MustParse("2Gi")
				c.Spec.Options.QuotaBackendSize = new(resource.MustParse("1Gi"))
			})
		},
	},
	"Freed": {
		reason:  "of history the free pages are enough, once they are given back: no change of the spec",
		history: true,
		says:    []string{"NOSPACE", "etcdctl defrag"}, // whether etcd counts history as in use changes from write to write
		room: func(s *stage, c *api.EtcdCluster) {
			etcd := s.etcd(c)
			r, err := etcd.Get(s.Context(), "history")
			s.must(err)
			_, err = etcd.Compact(s.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
			s.must(err)
			for _, endpoint := range etcd.Endpoints() {
				_, err := etcd.Defragment(s.Context(), endpoint)
				s.must(err)
			}
		},
	},
}

// TestFull: a database that has reached its quota can be given room while etcd refuses writes. The
// alarm is taken back when every member has room, and not before, and no acknowledged write is
// lost. Where the database fills up again, the alarm stays.
func TestFull(t *testing.T) {
	t.Parallel()
	type run struct {
		fullness
		version string
	}
	cases := map[string]run{}
	for name, f := range fullnesses {
		for _, version := range []string{etcd35, etcd36, etcd37} {
			cases[name+strings.ReplaceAll(version[:3], ".", "")] = run{f, version}
		}
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version = tc.version
			disarmed := &atomic.Int32{}
			s.operate(countDisarms(disarmed))
			c := s.cluster("db", 3)
			c.Spec.Storage.StorageClassName = new(hostlet.Expandable)
			c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("16Mi"))}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			who := identityOf(c)
			wrote := s.fill(c, "first", tc.history)
			message := s.stalled(c, api.ReasonAlarm)
			for _, says := range tc.says {
				if !strings.Contains(message, says) {
					t.Errorf("%s: the message does not say %q: %s", tc.reason, says, message)
				}
			}
			if n := disarmed.Load(); n != 0 {
				t.Errorf("%s: the alarm was taken back %d times while there was no room", tc.reason, n)
			}
			began := time.Now()
			tc.room(s, c)
			s.put(s.ready(c), "again", "written")
			t.Logf("%s: writes are taken %s after there was room to be made, and the alarm was taken back %d times", tc.reason, time.Since(began).Round(100*time.Millisecond), disarmed.Load())
			s.same(c, who)
			s.holds(c, wrote)
			if n := disarmed.Load(); n < 1 || n > 12 { // once for each member that has raised it, and some more where one has not heard yet
				t.Errorf("%s: the alarm was taken back %d times", tc.reason, n)
			}
			if tc.history { // it would be the same again
				return
			}
			before := disarmed.Load()
			if c.Spec.Options.QuotaBackendSize.Value() > 64<<20 {
				return // to fill that takes too long
			}
			wrote = append(wrote, s.fill(c, "second", false)...)
			s.stalled(c, api.ReasonAlarm)
			s.holds(c, wrote)
			if n := disarmed.Load(); n != before {
				t.Errorf("%s: the alarm that came back was taken back %d times", tc.reason, n-before)
			}
		})
	}
}

// TestQuotaTooSmall: a quota below the database is refused before a member is touched, and with
// more of it the change goes on.
func TestQuotaTooSmall(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("64Mi"))}
	contract.Watch(s, c)
	s.create(c)
	etcd := s.ready(c)
	for n := range 40 { // 20 MiB
		key := fmt.Sprintf("key-%02d", n)
		s.put(etcd, key, filling(key))
	}
	load := s.load(c)
	before, _ := s.lives(c)
	s.change(c, func() { c.Spec.Options.QuotaBackendSize = new(resource.MustParse("16Mi")) })
	message := s.stalled(c, api.ReasonQuotaTooSmall)
	for _, says := range []string{"no member is changed: the database of db-", "its quota would be 16 MiB", "Set spec.options.quotaBackendSize to ", " or more"} {
		if !strings.Contains(message, says) {
			t.Errorf("the message does not say %q: %s", says, message)
		}
	}
	load.await(20)
	if after, _ := s.lives(c); !maps.Equal(before, after) {
		t.Errorf("the Pods were %v, and are %v", before, after)
	}
	s.change(c, func() { c.Spec.Options.QuotaBackendSize = new(resource.MustParse("48Mi")) })
	s.ready(c)
	for _, pod := range s.pods(c) {
		if !slices.Contains(argsOf(&pod), "--quota-backend-bytes=50331648") {
			t.Errorf("%s does not run with the new quota: %v", pod.Name, argsOf(&pod))
		}
	}
	load.check()
}

// fill writes until etcd refuses it, and returns the keys whose writes were acknowledged.
func (s *stage) fill(c *api.EtcdCluster, prefix string, history bool) []string {
	s.Helper()
	etcd := s.etcd(c)
	var wrote []string
	for n := range 1000 {
		key := fmt.Sprintf("%s-%03d", prefix, n)
		if history {
			key = "history"
		}
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		_, err := etcd.Put(ctx, key, filling(key))
		cancel()
		if errors.Is(err, rpctypes.ErrNoSpace) {
			if len(wrote) == 0 {
				s.Fatal("void: etcd refuses the first write")
			}
			return wrote
		}
		s.must(err)
		wrote = append(wrote, key)
	}
	s.Fatal("void: etcd takes writes without an end")
	return nil
}

// filling is half a MiB that belongs to a key.
func filling(key string) string { return strings.Repeat(key+" ", 512<<10/(len(key)+1)) }

// holds fails unless the values of all keys are as they were acknowledged.
func (s *stage) holds(c *api.EtcdCluster, keys []string) {
	s.Helper()
	etcd := s.etcd(c)
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		r, err := etcd.Get(ctx, key)
		cancel()
		s.must(err)
		if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != filling(key) {
			s.Fatalf("acknowledged write of %s is lost", key)
		}
	}
}

// countDisarms counts how often etcd is asked to take back an alarm.
func countDisarms(n *atomic.Int32) func(*reconcile.Reconciler) {
	return func(r *reconcile.Reconciler) {
		dial := r.Dial
		r.Dial = func(host string, port int) (membership.Client, error) {
			etcd, err := dial(host, port)
			return counted{etcd, n}, err
		}
	}
}

type counted struct {
	membership.Client
	disarms *atomic.Int32
}

func (c counted) Lasts() bool { return c.Client.(membership.Lasting).Lasts() }

func (c counted) Disarm(ctx context.Context, kind membership.AlarmKind, id membership.ID) error {
	c.disarms.Add(1)
	return c.Client.Disarm(ctx, kind, id)
}
