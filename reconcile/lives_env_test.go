//go:build env

package reconcile_test

import (
	order "cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/hostlet"
)

// life is what a cluster goes through while its operator is disturbed. It returns the cluster as it
// is at the end, and what must be in it.
type life struct {
	reason  string
	version string // of etcd; 3.6 where none is named
	forgets bool   // on the way it loses all that was written, as it is asked to
	backsUp bool   // it needs what carries out EtcdBackups
	run     func(s *stage, f *fault) (*api.EtcdCluster, data)
}

// play the life on a stage of its own, under clients that write and read from when the cluster is
// born to the end. It returns what came of the writes as well.
func (l life) play(s *stage, f *fault) (*api.EtcdCluster, history.Result) {
	s.version, s.loaded = order.Or(l.version, etcd36), !l.forgets
	c, kept := l.run(s, f)
	var writes history.Result
	if s.loaded {
		writes = s.clients.check()
	}
	s.settled(c, kept)
	return c, writes
}

// data is what was written and acknowledged.
type data map[string]string

var lives = map[string]life{
	"wake":    {reason: "created, put to sleep and woken", run: wake},
	"grow":    {reason: "one member becomes three", run: resize(1, 3)},
	"shrink":  {reason: "three members become one", run: resize(3, 1)},
	"grow35":  {reason: "the same with etcd 3.5", version: etcd35, run: resize(1, 3)},
	"grow37":  {reason: "the same with etcd 3.7", version: etcd37, run: resize(1, 3)},
	"lead":    {reason: "the same, and the last one to come has led", run: led},
	"resize":  {reason: "to five and back", run: resize(1, 3, 5, 3, 1)},
	"late":    {reason: "to five and back, where a new member needs a snapshot and may serve clients late", run: late},
	"heal":    {reason: "one member's volume is lost", run: heal},
	"upgrade": {reason: "from 3.5 to 3.6", run: reversion(etcd35, etcd36)},
	"double":  {reason: "from 3.5 to 3.7, with a log that is rewritten on the way", run: reversion(etcd35, etcd37)},
	"down":    {reason: "from 3.7 to 3.6", run: reversion(etcd37, etcd36)},
	"options": {reason: "other flags, which recreate the Pods", run: reflag},
	"cpu":     {reason: "more cpu, while it runs, and then more than its node has, which recreates the Pods", run: resources},
	"mend":    {reason: "flags with which etcd does not start, which are rolled back, and then others", run: mend(3)},
	"mend1":   {reason: "the same while no other serves", run: mend(1)},
	"move":    {reason: "to a volume of another class, which takes another member", run: relocate},
	"rotate":  {reason: "both certificate authorities are rotated, and no step waits for applications", run: rotate},
	"switch":  {reason: "clients may use TLS, and then may not again, under clients without it", run: switchPort},
	"restore": {reason: "started from a stored snapshot", forgets: true, run: restore},
	"inplace": {reason: "put back to a stored snapshot while it serves", run: putInPlace},
	"survive": {reason: "put back to what the one member has that is left", run: survive},
	"backup":  {reason: "a snapshot is taken, verified and deleted", backsUp: true, run: takeAndDelete},
	"delete":  {reason: "deleted with its volumes, and created again at once", forgets: true, run: recreate(api.RetentionDelete)},
	"retain":  {reason: "deleted, and created again at once over its volumes", run: recreate(api.RetentionRetain)},
}

// born creates a cluster, waits for it and writes to it; clients go on with that where the stage is
// to have some, as with says.
func (s *stage) born(c *api.EtcdCluster, with ...func(*history.Config)) data {
	s.Helper()
	contract.Watch(s, c)
	s.create(c)
	kept := data{}
	s.ready(c)
	s.write(c, kept)
	if s.loaded {
		s.clients = s.load(c, append([]func(*history.Config){light}, with...)...)
	}
	return kept
}

// write something new.
func (s *stage) write(c *api.EtcdCluster, kept data) {
	s.Helper()
	key := "key" + strconv.Itoa(len(kept))
	s.put(s.etcd(c), key, "value")
	kept[key] = "value"
}

func wake(s *stage, f *fault) (*api.EtcdCluster, data) {
	f.arm()
	c := s.cluster("db", 3)
	kept := s.born(c)
	was := identityOf(c)
	s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
	s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	s.change(c, func() { c.Spec.Replicas = new(int32(3)) })
	s.ready(c)
	if diff := cmp.Diff(was, identityOf(c)); diff != "" {
		s.Errorf("identity changed: -want +got:\n%s", diff)
	}
	return c, kept
}

func resize(first int32, sizes ...int32) func(*stage, *fault) (*api.EtcdCluster, data) {
	return func(s *stage, f *fault) (*api.EtcdCluster, data) {
		c := s.cluster("db", first)
		kept := s.born(c)
		f.arm()
		s.resizes(c, kept, sizes...)
		return c, kept
	}
}

func late(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	c.Spec.Options = snapshots(s.version)
	kept := s.born(c)
	etcd := s.etcd(c)
	for range *c.Spec.Options.SnapshotCount {
		s.put(etcd, "key-again", "value")
	}
	kept["key-again"] = "value"
	f.arm()
	s.resizes(c, kept, 5, 3)
	return c, kept
}

// snapshots are options with which every new member is sent a snapshot.
func snapshots(version string) *api.Options {
	catchUp := "snapshot-catchup-entries"
	if version == etcd35 {
		catchUp = "experimental-" + catchUp
	}
	return &api.Options{SnapshotCount: new(int64(100)), Flags: map[string]string{catchUp: "1"}}
}

// resizes the cluster to one size after the other.
func (s *stage) resizes(c *api.EtcdCluster, kept data, sizes ...int32) {
	s.Helper()
	for _, size := range sizes {
		s.change(c, func() { c.Spec.Replicas = new(size) })
		s.await(c, fmt.Sprintf("of %d members", size), func() bool {
			return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == int(size)
		})
		s.write(c, kept)
	}
}

func led(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	kept := s.born(c)
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error { // only the leader can be asked for it, and one after the other is
		_, err := etcd.MoveLeader(ctx, memberID(c, "db-2"))
		return err
	}, nil)
	f.arm()
	s.resizes(c, kept, 1)
	return c, kept
}

func heal(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	kept := s.born(c)
	f.arm()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}}
	if err := s.Delete(s.Context(), claim); err != nil {
		s.Fatal(err)
	}
	s.deletePod("db-1")
	s.await(c, "healed", func() bool {
		members := identityOf(c).Members
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(members) == 3 && members["db-1"] == ""
	})
	s.write(c, kept)
	return c, kept
}

func reversion(from, to string) func(*stage, *fault) (*api.EtcdCluster, data) {
	return func(s *stage, f *fault) (*api.EtcdCluster, data) {
		c := s.cluster("db", 3)
		c.Spec.Version = from
		kept := s.born(c)
		was := identityOf(c)
		f.arm()
		s.change(c, func() { c.Spec.Version = to })
		s.runs(c, to)
		s.same(c, was)
		s.write(c, kept)
		return c, kept
	}
}

func reflag(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	kept := s.born(c)
	was := identityOf(c)
	f.arm()
	s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
	s.ready(c)
	s.same(c, was)
	s.write(c, kept)
	return c, kept
}

func resources(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	c.Spec.Resources = &api.Resources{Requests: hostlet.CPU(1)}
	kept := s.born(c)
	was := identityOf(c)
	f.arm()
	for _, n := range []int64{2, hostlet.Cores + 1} {
		s.change(c, func() { c.Spec.Resources.Requests = hostlet.CPU(n) })
		s.ready(c)
		s.same(c, was)
		s.write(c, kept)
	}
	return c, kept
}

func mend(size int32) func(*stage, *fault) (*api.EtcdCluster, data) {
	return func(s *stage, f *fault) (*api.EtcdCluster, data) {
		c := s.cluster("db", size)
		kept := s.born(c)
		was := identityOf(c)
		f.arm()
		s.change(c, func() { wrongOptions(c) })
		s.stalled(c, api.ReasonChangeFailed)
		s.whole(c)
		if names := s.has(c, unwilling); len(names) > 0 {
			s.Errorf("%v still have what was rolled back", names)
		}
		s.write(c, kept)
		s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
		s.ready(c)
		s.same(c, was)
		s.write(c, kept)
		return c, kept
	}
}

func relocate(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 1)
	kept := s.born(c)
	f.arm()
	s.change(c, func() { replaced("1Gi", hostlet.Expandable)(&c.Spec) })
	s.await(c, "moved", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == 1 && c.Status.Members[0].Name != "db-0"
	})
	s.on(c, hostlet.Expandable, "1Gi")
	s.write(c, kept)
	return c, kept
}

func rotate(s *stage, f *fault) (*api.EtcdCluster, data) {
	s.secured = true
	c := s.cluster("db", 3)
	c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
	kept := s.born(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c, c.ApplicationSecret())) })
	was, tls := identityOf(c), c.Status.TLS.DeepCopy()
	f.arm()
	s.change(c, func() { c.Spec.TLS.Client.RotateAuthority, c.Spec.TLS.Peer.RotateAuthority = "a", "a" })
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && rotatedTo("a", c.Status.TLS.Client) && rotatedTo("a", c.Status.TLS.Peer)
	})
	if c.Status.TLS.Client.Authority == tls.Client.Authority || c.Status.TLS.Peer.Authority == tls.Peer.Authority {
		s.Errorf("the authorities are the same: %+v", c.Status.TLS)
	}
	s.same(c, was)
	s.write(c, kept)
	return c, kept
}

func switchPort(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	kept := s.born(c)
	was := identityOf(c)
	f.arm()
	for _, port := range []api.ClientTLS{{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed}, {Mode: api.TLSDisabled}} {
		s.switches(c, port)
		s.same(c, was)
	}
	s.write(c, kept)
	return c, kept
}

func recreate(policy api.RetentionPolicy) func(*stage, *fault) (*api.EtcdCluster, data) {
	return func(s *stage, f *fault) (*api.EtcdCluster, data) {
		cluster := func() *api.EtcdCluster {
			c := s.cluster("db", 3)
			c.Spec.Storage.Retention = &api.Retention{WhenDeleted: policy}
			return c
		}
		c := cluster()
		kept := s.born(c)
		was := identityOf(c)
		f.arm()
		if err := s.Delete(s.Context(), c); err != nil {
			s.Fatal(err)
		}
		s.gone(c)
		c = cluster()
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		diff := cmp.Diff(was, identityOf(c))
		if policy == api.RetentionDelete {
			if kept = (data{}); identityOf(c).Cluster == was.Cluster {
				s.Errorf("the new cluster has the ID of the old one, %s", was.Cluster)
			}
		} else if diff != "" {
			s.Errorf("identity changed: -want +got:\n%s", diff)
		}
		s.write(c, kept)
		return c, kept
	}
}

// names of the cluster's members, sorted.
func memberNames(c *api.EtcdCluster) []string { return slices.Sorted(maps.Keys(identityOf(c).Members)) }
