//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

var gigabytes = flag.Int64("bench.gigabytes", 1, "how large the database is of which TestBenchSnapshots takes snapshots, in GiB")

// What snapshots may take, beside etcd's own tools in Pods on the same node, and of an agent's
// memory.
const (
	saveRatio    = 1.1
	restoreRatio = 1.2
	agentMemory  = 128 << 20

	// A write stall while a snapshot is saved may be so many times the one without, and as long as
	// this in any case.
	saveStallRatio = 1.5
	saveStallFloor = 100 * time.Millisecond
)

// TestBenchSnapshots: a database is saved to a volume and restored to three members, by Quorate and
// by hand in turn.
func TestBenchSnapshots(t *testing.T) {
	patience *= time.Duration(*gigabytes) // it runs alone
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

// benchSaves compares "quorate agent save" with "etcdctl snapshot save", each from the start of its
// process to the end, and leaves the last backup.
func (s *stage) benchSaves(c *api.EtcdCluster, most map[string]int64) *api.EtcdBackup {
	s.Helper()
	var b *api.EtcdBackup
	var whole, sending []time.Duration
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
			m := s.manifestOf(b)
			sending = append(sending, m.TakenAt.Sub(m.StartedAt))
			return agents["save"].took
		},
	)
	title := fmt.Sprintf("Saving %s, of which %s are stored", mebibytes(b.Status.Size), mebibytes(b.Status.StoredSize))
	saves.judge(s.T, title, saveRatio, row("of that, etcd is sending", sending), row("EtcdBackup to Ready, with verify: Hash", whole))
	return b
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
	bound := max(saveStallFloor, time.Duration(saveStallRatio*float64(median(none))))
	if got := median(byQuorate); got > bound {
		s.Errorf("median of the longest write stalls while a snapshot is saved %s, want at most %s", got, bound)
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

// benchRestores compares three members that Quorate restores with three that etcdutl does, in init
// containers as well, and tells what three empty ones take.
func (s *stage) benchRestores(name string, most map[string]int64) {
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
				Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backupsClaim}}, Snapshot: name,
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
