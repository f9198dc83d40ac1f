//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

// large is a cluster with room for the database.
func (s *stage) large(name string) *api.EtcdCluster {
	c := s.cluster(name, 3)
	c.Spec.Storage.Size = *resource.NewQuantity(4**gigabytes<<30, resource.BinarySI)
	c.Spec.Options = &api.Options{QuotaBackendSize: resource.NewQuantity(2**gigabytes<<30, resource.BinarySI)}
	return c
}

// fill writes until the database of a member is that large: values of 4 KiB, of which half are
// random and half a text that is always the same.
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

// manifestOf is what the store says of a snapshot: its times are exact, and those of a status are
// in seconds.
func (s *stage) manifestOf(b *api.EtcdBackup) snapshot.Manifest {
	s.Helper()
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: backupsClaim}, claim); err != nil {
		s.Fatal(err)
	}
	if err := s.Get(s.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		s.Fatal(err)
	}
	dir := ""
	switch v := volume.Spec.PersistentVolumeSource; {
	case v.HostPath != nil:
		dir = v.HostPath.Path
	case v.Local != nil:
		dir = v.Local.Path
	}
	text, err := onNode(s.Context(), "cat", path.Join(dir, b.Status.Name+".manifest.json"))
	if err != nil {
		s.Fatal(err)
	}
	var m snapshot.Manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		s.Fatal(err)
	}
	return m
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
