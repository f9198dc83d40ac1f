//go:build env

package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// onLoss is a cluster of three that restores itself 10 s after its majority was lost.
func (s *stage) onLoss(policy api.QuorumLossPolicy) *api.EtcdCluster {
	c := s.cluster("db", 3)
	after := api.Duration("10s")
	c.Spec.Recovery = &api.Recovery{QuorumLoss: policy, QuorumLossAfter: &after}
	c.Spec.Backup = &api.Backup{Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backups}}}
	return c
}

// madeFor waits for the EtcdRestore that is created for the loss of the cluster.
func (s *stage) madeFor(c *api.EtcdCluster) *api.EtcdRestore {
	s.Helper()
	e := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: c.QuorumLossRestoreName(), Namespace: s.ns}}
	s.awaitObject(e, "created", func() bool { return e.UID != "" })
	return e
}

// TestQuorumLoss: the majority is lost for good, and the spec says what is done then. What is left
// is restored once.
func TestQuorumLoss(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		policy api.QuorumLossPolicy
		key    bool // snapshots are encrypted
		later  bool // what was written after the snapshot is there
		from   string
	}{
		"FromSurvivor": {
			reason: "the member that is left has all that was acknowledged",
			policy: api.QuorumLossFromSurvivor,
			later:  true,
			from:   "member/db-1",
		},
		"FromBackup": {
			reason: "the newest snapshot is taken, though a member is left, and read with the identity of the cluster",
			policy: api.QuorumLossFromBackup,
			key:    true,
			from:   "monday",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.operate()
			c := s.onLoss(tc.policy)
			var recipients []string
			if tc.key {
				pair := s.keyPair()
				recipients = append(recipients, pair.Recipient().String())
				c.Spec.Backup.Encryption, c.Spec.Backup.Identity = encryptedTo(pair), s.secretOf("age", pair)
			}
			s.create(c)
			s.ready(c)
			kept := data{}
			s.write(c, kept)
			s.snapshot(c, "monday", recipients...)
			s.put(s.etcd(c), "later", "value")
			s.loseMajority(c)
			if loss := c.Status.QuorumLoss; loss == nil || loss.Restore != "" {
				t.Fatalf("status.quorumLoss is %+v when the loss was just seen", loss)
			}
			e := s.madeFor(c)
			s.restores(e)
			etcd := s.ready(c)
			if r := e.Status.Restored; r == nil || r.Name != tc.from {
				t.Errorf("status.restored is %+v, want %s", r, tc.from)
			}
			got, err := etcd.Get(t.Context(), "later")
			if err != nil || (len(got.Kvs) > 0) != tc.later {
				t.Errorf("what was written last: %v, %v, want it there: %t", got, err, tc.later)
			}
			s.await(c, "no loss any more", func() bool { return c.Status.QuorumLoss == nil })
			s.write(c, kept)
			s.sound(c, memberNames(c), kept)
		})
	}
}

// TestQuorumLossDeleted: a person deletes the EtcdRestore that was created for the loss before it
// is completed. Nothing is created again for the same loss.
func TestQuorumLossDeleted(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c := s.onLoss(api.QuorumLossFromBackup) // there is no snapshot: it waits
	s.create(c)
	s.ready(c)
	kept := data{}
	s.write(c, kept)
	s.loseMajority(c)
	e := s.madeFor(c)
	s.await(c, "it was written down", func() bool { return c.Status.QuorumLoss != nil && c.Status.QuorumLoss.Restore == e.Name })
	s.must(s.Delete(t.Context(), e))
	s.gone(e)
	own := s.etcdRestore("own", survivorOf("")) // it comes after whatever else is asked for
	s.create(own)
	s.restores(own)
	s.ready(c)
	s.gone(e) // it was not created again
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
	if ready := meta.FindStatusCondition(own.Status.Conditions, api.ConditionReady); ready == nil || ready.Reason != api.ReasonRestored {
		t.Errorf("the EtcdRestore says %+v", ready)
	}
}
