//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

var gigabytes = flag.Int64("bench.gigabytes", 1, "how large the database is of which TestBenchSnapshots takes snapshots, in GiB")

// What snapshots may take, beside etcd's own tools in Pods on the same node, and of an agent's memory.
const (
	saveRatio    = 1.1
	restoreRatio = 1.2
	agentMemory  = 128 << 20

	// A write stall while a snapshot is saved may be so many times the one without, and as long as this in any case.
	saveStallRatio = 1.5
	saveStallFloor = 100 * time.Millisecond
)

// TestBenchSnapshots: a database is saved to a volume and restored to three members, by Quorate and by hand in turn.
func TestBenchSnapshots(t *testing.T) {
	s, remove := temporaryStage(t)
	defer remove()
	c := s.large("db")
	s.create(c)
	s.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: backupsClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: c.Spec.Storage.Size}},
		},
	})
	s.ready(c)
	s.fill(c, *gigabytes<<30)
	most := map[string]int64{} // of each command of an agent
	b := s.benchSaves(c, most)
	s.benchStalls(c, most)
	s.restorable(c, b, most)
	s.clear(c)
	s.benchRestores(b.Status.Name, most)

	rows := []string{"| agent | most memory of its own | bound |", "| --- | ---: | ---: |"}
	for _, command := range slices.Sorted(maps.Keys(most)) {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", command, mebibytes(most[command]), mebibytes(agentMemory)))
		if most[command] == 0 || most[command] >= agentMemory {
			t.Errorf("agent %s had %d bytes of memory, want less than %d", command, most[command], agentMemory)
		}
	}
	fmt.Printf("\nMemory of the agents\n\n%s\n\n", strings.Join(rows, "\n"))
}

// large is a cluster with room for the database.
func (s *stage) large(name string) *api.EtcdCluster {
	c := s.cluster(name, 3)
	c.Spec.Storage.Size = *resource.NewQuantity(4**gigabytes<<30, resource.BinarySI)
	c.Spec.Options = &api.Options{QuotaBackendSize: resource.NewQuantity(2**gigabytes<<30, resource.BinarySI)}
	return c
}

// fill writes until the database of a member is that large: keys of 4 KiB each, half of which compression finds nothing in.
func (s *stage) fill(c *api.EtcdCluster, size int64) {
	s.Helper()
	const values, value = 32, 4 << 10
	var endpoints []string
	for n := range int(*c.Spec.Replicas) {
		endpoints = append(endpoints, net.JoinHostPort(c.MemberName(n), strconv.Itoa(api.PortClient)))
	}
	etcd, err := dialMembers(s.ns, endpoints)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = etcd.Close() }() // all was acknowledged
	begun, written := time.Now(), 0
	for {
		status, err := etcd.Status(s.Context(), endpoints[0])
		if err != nil {
			s.Fatal(err)
		}
		if status.DbSize >= size {
			s.Logf("filled %s in %.0f s", mebibytes(status.DbSize), time.Since(begun).Seconds())
			return
		}
		all, ctx := errgroup.WithContext(s.Context())
		for range 4 {
			first := written
			written += 8 * values
			all.Go(func() error {
				random := rand.NewChaCha8([32]byte{byte(first >> 8), byte(first >> 16), byte(first >> 24)})
				for n := first; n < first+8*values; n += values {
					var puts []clientv3.Op
					for key := n; key < n+values; key++ {
						half := make([]byte, value/2)
						_, _ = random.Read(half) // it cannot fail
						puts = append(puts, clientv3.OpPut(fmt.Sprintf("/registry/objects/namespace-%02d/%08d", key%50, key), string(half)+strings.Repeat(`{"name":"container","image":"registry.example.com/app:v1"},`, value/2/58)))
					}
					if _, err := etcd.Txn(ctx).Then(puts...).Commit(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			s.Fatal(err)
		}
	}
}

// toVolume is an EtcdBackup to the same volume as by hand.
func (s *stage) toVolume(c *api.EtcdCluster, name string, verify api.VerifyMode) *api.EtcdBackup {
	b := s.backup(name, c.Name)
	b.Spec.Store = &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backupsClaim}}
	b.Spec.Verify, b.Spec.DeletionPolicy = verify, api.RetentionDelete
	return b
}

// saved takes a snapshot by Quorate, and returns what its agents were.
func (s *stage) saved(b *api.EtcdBackup, most map[string]int64) map[string]ran {
	s.Helper()
	s.synced()
	ended := observe(s.T, "agent", s.ns+"-"+b.Name)
	s.create(b)
	s.await(b, "stored", func() bool { return b.Status.SHA256 != "" || b.Status.Failure != nil })
	s.verified(b)
	return counted(s.T, ended(), most)
}

// counted are agents by their commands, and the most memory of each is kept.
func counted(t *testing.T, processes []ran, most map[string]int64) map[string]ran {
	t.Helper()
	commands := agents(t, processes)
	for command, p := range commands {
		most[command] = max(most[command], p.memory)
	}
	return commands
}

// forgotten deletes a backup and what it has stored.
func (s *stage) forgotten(b *api.EtcdBackup) {
	s.Helper()
	if err := s.Delete(s.Context(), b); err != nil {
		s.Fatal(err)
	}
	s.gone(b)
}

// benchSaves compares "quorate agent save" with "etcdctl snapshot save", each from the start of its process to the end, and leaves the
// last backup.
func (s *stage) benchSaves(c *api.EtcdCluster, most map[string]int64) *api.EtcdBackup {
	s.Helper()
	var b *api.EtcdBackup
	var whole []time.Duration
	round := 0
	saves := fight(s.T,
		func() time.Duration {
			if b != nil {
				s.forgotten(b)
			}
			s.synced()
			return s.saveByHand(c, s.notLeading(c))
		},
		func() time.Duration {
			round++
			b = s.toVolume(c, fmt.Sprintf("saved-%d", round), api.VerifyHash)
			begun := time.Now()
			agents := s.saved(b, most)
			whole = append(whole, time.Since(begun))
			return agents["save"].took
		},
	)
	title := fmt.Sprintf("Saving %s, of which %s are stored", mebibytes(b.Status.Size), mebibytes(b.Status.StoredSize))
	saves.judge(s.T, title, saveRatio, row("EtcdBackup to Ready, with verify: Hash", whole))
	return b
}

// notLeading is a member that the agent takes a snapshot from too.
func (s *stage) notLeading(c *api.EtcdCluster) string {
	s.Helper()
	for n := range int(*c.Spec.Replicas) {
		if name := c.MemberName(n); name != c.Status.Leader {
			return name
		}
	}
	s.Fatal("every member leads")
	return ""
}

// benchStalls compares for how long no client gets on while a snapshot is saved, and while none is.
func (s *stage) benchStalls(c *api.EtcdCluster, most map[string]int64) {
	s.Helper()
	load := s.writeAtPace(c, false)
	var none, byHand, byQuorate []time.Duration
	for n := range *pairs {
		<-time.After(settled)
		load.Pause()
		s.saveByHand(c, s.notLeading(c))
		byHand = append(byHand, load.Pause())

		<-time.After(settled)
		b := s.toVolume(c, fmt.Sprintf("stalls-%d", n+1), api.VerifyHash)
		load.Pause()
		begun := time.Now()
		s.saved(b, most)
		took := time.Since(begun)
		byQuorate = append(byQuorate, load.Pause())
		s.forgotten(b)

		s.synced()
		<-time.After(settled)
		load.Pause()
		<-time.After(took) // what is compared is as long
		none = append(none, load.Pause())
		s.Logf("round %d: longest stall %d ms without, %d ms by hand, %d ms by Quorate", n+1, none[n].Milliseconds(), byHand[n].Milliseconds(), byQuorate[n].Milliseconds())
	}
	s.checkPace(load)
	fmt.Printf("\nLongest write stall: %d rounds\n\n| | min | median | max |\n| --- | ---: | ---: | ---: |\n%s\n%s\n%s\n\n", *pairs,
		stallRow("no snapshot is taken", none), stallRow("by hand", byHand), stallRow("by Quorate", byQuorate))
	most50 := max(saveStallFloor, time.Duration(saveStallRatio*float64(median(none))))
	if got := median(byQuorate); got > most50 {
		s.Errorf("median of the longest write stalls while a snapshot is saved %s, want at most %s", got, most50)
	}
}

func stallRow(title string, stalls []time.Duration) string {
	return fmt.Sprintf("| %s | %d ms | %d ms | %d ms |", title, slices.Min(stalls).Milliseconds(), median(stalls).Milliseconds(), slices.Max(stalls).Milliseconds())
}

// restorable verifies another snapshot by a restore, for the memory of all agents that take part.
func (s *stage) restorable(c *api.EtcdCluster, b *api.EtcdBackup, most map[string]int64) {
	s.Helper()
	verified := s.toVolume(c, "restorable", api.VerifyRestore)
	begun := time.Now()
	s.saved(verified, most)
	s.Logf("EtcdBackup to Ready, with verify: Restore: %.1f s", time.Since(begun).Seconds())
	s.forgotten(verified)
	s.change(b, func() { b.Spec.DeletionPolicy = api.RetentionRetain })
}

// benchRestores compares three members that Quorate restores with three that etcdutl does, in init containers as well, and tells what
// three empty ones take.
func (s *stage) benchRestores(snapshot string, most map[string]int64) {
	s.Helper()
	var empty, utl, agent []time.Duration
	restored := fight(s.T,
		func() time.Duration {
			floor := s.large("floor")
			empty = append(empty, s.untilServing(floor.Name, s.byHand(floor)...))
			s.clear(floor)
			c := s.large("hand")
			ended := observe(s.T, "etcdutl", "--initial-cluster="+c.MemberName(0)+"=", s.ns)
			took := s.untilServing(c.Name, s.restoredByHand(c)...)
			utl = append(utl, longest(ended()))
			s.clear(c)
			return took
		},
		func() time.Duration {
			c := s.large("back")
			c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{
				Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backupsClaim}}, Snapshot: snapshot,
			}}
			ended := observe(s.T, "agent", "restore-member", "--initial-cluster="+c.MemberName(0)+"=", s.ns)
			took := s.untilServing(c.Name, s.manifest(c))
			processes := ended()
			counted(s.T, processes, most)
			agent = append(agent, longest(processes))
			s.ready(c)
			s.clear(c)
			return took
		},
	)
	restored.judge(s.T, "Three members restored", restoreRatio, row("three empty members by hand", empty), row("etcdutl alone, the slowest of three at once", utl), row("the agent alone, the slowest of three at once", agent))
}

func longest(processes []ran) time.Duration {
	return slices.MaxFunc(processes, func(a, b ran) int { return int(a.took - b.took) }).took
}
