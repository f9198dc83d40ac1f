//go:build env

package reconcile_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestRestoreDocumented does what docs/restore.md tells people to, with the commands as they stand
// there.
func TestRestoreDocumented(t *testing.T) {
	t.Parallel()
	p := newPage(t, "restore.md")
	const (
		apply  = "kubectl apply --server-side -f restore.yaml"
		resume = `kubectl patch etcdrestore db-20261125 --type=merge --patch='{"spec":{"suspend":false}}'`
		plan   = "kubectl get etcdrestore db-20261125 -o jsonpath-as-json='{.status.plan}'"
		revert = "kubectl delete etcdrestore db-20261125"
		back   = "kubectl wait --for=condition=Ready --timeout=10m etcdcluster/db"
	)
	begin := func(t *testing.T, stands map[string]string) (*shell, *api.EtcdCluster, data) {
		s := newStage(t, agents)
		s.operate()
		c := s.cluster("db", 3)
		c.Spec.Backup = &api.Backup{Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backups}}}
		c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionRetain}
		s.create(c)
		s.ready(c)
		kept := data{}
		s.write(c, kept)
		return p.shell(s, stands), c, kept
	}
	// It serves: step 1 of the page says what to write then.
	suspended := p.manifest("name: db-20261125\n", "suspend: true") + "  whenServing: Replace\n"

	t.Run("Restore", func(t *testing.T) {
		h, c, kept := begin(t, nil)
		m := h.snapshot(c, "monday")
		h.put(h.etcd(c), "later", "value")
		h.prints(h.types("kubectl get etcdcluster db"), "AVAILABLE", "True")
		h.prints(h.types("kubectl describe etcdcluster db"), "Cluster ID", c.Status.ClusterID)
		h.create(&api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "nightly"}, Spec: api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: "db"}}})
		h.prints(h.types("kubectl get etcdbackups --output=wide"), "READY", "TAKEN", "nightly")
		h.must(h.hostlet.Spoil(t.Context(), h.ns, backups, func(dir string) error {
			h.stands["s3://etcd-backups/prod"] = dir
			h.prints(h.types("quorate snapshot list --store s3://etcd-backups/prod"), m.Name)
			return nil
		}))

		// A restore that cannot succeed is reverted.
		h.must(h.hostlet.Spoil(t.Context(), h.ns, backups, flip(m.Object)))
		h.writes("restore.yaml", suspended)
		h.types(apply)
		e := h.etcdRestore("db-20261125")
		h.shows(e)
		h.prints(h.types("kubectl get etcdrestores"), e.Name, api.ReasonSuspended)
		h.prints(h.types(plan), `"name": "monday"`, `"db-3"`, `"db-0"`, `"closedService": "db-client"`)
		h.types(resume)
		h.saysStalled(e, api.ReasonPodPending, "is damaged")
		h.prints(h.types("kubectl get etcdcluster db -o jsonpath='{.status.restore.phase}'"), string(api.RestoreRestoring))
		h.prints(h.types("kubectl describe etcdrestore db-20261125"), "is damaged")
		h.types(revert)
		h.types(back)
		h.want(h.ready(c), "later", "value")

		// One that can is carried out: it may have the same name, since that was not.
		h.must(h.hostlet.Spoil(t.Context(), h.ns, backups, flip(m.Object)))
		h.types(apply)
		h.shows(e)
		h.types(resume)
		h.types("kubectl wait --for=condition=Ready --timeout=10m etcdrestore/db-20261125")
		h.prints(h.types("kubectl get etcdrestore db-20261125 -o jsonpath='{.status.restored}'"), `"name":"monday"`)
		h.ready(c)
		h.restoredFrom(c, m)
		h.applies(p.manifest("kind: EtcdBackup", "name: db-after-restore"))

		h.now(e)
		h.prints(h.types(`kubectl get persistentvolumeclaims --selector=etcd.quorate.dev/cluster=db -o custom-columns='NAME:.metadata.name,SET-ASIDE:.metadata.annotations.etcd\.quorate\.dev/set-aside'`), "SET-ASIDE", "db-0", "db-8", string(e.UID))
		h.types("kubectl delete persistentvolumeclaim db-0 db-1 db-2")
		h.write(c, kept)
		h.sound(c, memberNames(c), kept)
	})

	t.Run("DeletedMidway", func(t *testing.T) {
		h, c, kept := begin(t, nil)
		m := h.snapshot(c, "monday")
		before := identityOf(c)
		h.must(h.hostlet.Spoil(t.Context(), h.ns, backups, flip(m.Object)))
		e := h.etcdRestore("db-20261125", anyway)
		h.create(e)
		h.saysStalled(e, api.ReasonPodPending, "is damaged")
		again := c.DeepCopy()
		h.must(h.Delete(t.Context(), c))
		h.gone(c)
		h.saysStalled(e, api.ReasonCarriedOut, "none is begun twice")
		c = &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: again.Name, Namespace: again.Namespace}, Spec: again.Spec}
		h.create(c)
		h.stalledWith(c, api.ReasonDataLost, "db-0, db-1, db-2")
		h.types(revert)
		h.types("kubectl delete persistentvolumeclaim db-3 db-4 db-5")
		h.types("kubectl annotate persistentvolumeclaim db-0 db-1 db-2 etcd.quorate.dev/set-aside-")
		h.ready(c)
		h.same(c, before)
		h.write(c, kept)
		h.sound(c, memberNames(c), kept)
	})

	t.Run("Survivor", func(t *testing.T) {
		h, c, kept := begin(t, nil)
		h.loseMajority(c)
		h.prints(h.types(`kubectl get etcdcluster db -o jsonpath='{range .status.members[*]}{.name} {.health}{"\n"}{end}'`), "db-0 Lost\n", "db-2 Lost\n")
		h.writes("restore.yaml", p.manifest("name: db-20261126\n", "survivor: {}"))
		h.types(apply)
		e := h.etcdRestore("db-20261126")
		h.shows(e)
		h.prints(h.types(strings.ReplaceAll(plan, "25", "26")), `"name": "member/db-1"`)
		h.types(strings.ReplaceAll(resume, "25", "26"))
		h.restores(e)
		if ready := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady); !strings.Contains(ready.Message, "from the data of db-1") {
			t.Errorf("the EtcdRestore says %q", ready.Message)
		}
		h.ready(c)
		h.write(c, kept)
		h.sound(c, memberNames(c), kept)
	})

	t.Run("Automatically", func(t *testing.T) {
		s := newStage(t)
		h := p.shell(s, nil)
		h.applies(p.manifest("kind: EtcdCluster", "quorumLoss: FromSurvivor"))
		h.applies(p.manifest("name: db-20261125-again"))
		h.applies(strings.Replace(p.manifest("backupRef: {name: before-migration}"), "spec:\n", "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {name: by-name}\nspec:\n", 1))
	})
}
