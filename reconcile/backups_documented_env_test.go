//go:build env

package reconcile_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

// TestBackupsDocumented does what docs/backups.md tells people to, with the commands as they stand
// there.
func TestBackupsDocumented(t *testing.T) {
	t.Parallel()
	p := newPage(t, "backups.md",
		"age-keygen -o identity.txt", // is another program; its file has the form of keyPair
	)
	const ready = "kubectl wait --for=condition=Ready --timeout=10m etcdcluster/db"

	t.Run("AllIsLost", func(t *testing.T) {
		s := newStage(t, agents)
		s.operate()
		h := p.shell(s, onVolume)
		c := s.cluster("db", 3)
		s.create(c)
		s.ready(c)
		kept := data{}
		s.write(c, kept)
		m := s.snapshot(c, "monday")
		s.put(s.etcd(c), "later", "value")
		h.prints(h.types("kubectl describe etcdcluster db"), c.Status.ClusterID)
		h.prints(h.types("kubectl get pods,persistentvolumeclaims --selector=etcd.quorate.dev/cluster=db"), "pod/db-0", "persistentvolumeclaim/db-2")
		h.prints(h.types("kubectl get etcdbackups --output=wide"), "No resources found")
		h.types("kubectl get etcdcluster db -o yaml > db.yaml")
		h.types("kubectl delete etcdcluster db")
		h.types("kubectl delete persistentvolumeclaims --selector=etcd.quorate.dev/cluster=db")
		h.stands["team-a-nightly-20261125t075000z-1a2b3c4d"] = m.Name
		h.restoringManifest(p.manifest("snapshot: team-a-nightly-20261125t075000z-1a2b3c4d"))
		h.types("kubectl apply --server-side -f db.yaml")
		h.types(ready)
		h.prints(h.types("kubectl get etcdcluster db -o jsonpath='{.status.restored}'"), `"name":"monday"`)
		c = &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: s.ns}}
		s.ready(c)
		s.restoredFrom(c, m)
		s.write(c, kept)
		s.sound(c, memberNames(c), kept)
	})

	t.Run("TakeAndDelete", func(t *testing.T) {
		s := newStage(t, agents)
		s.inStore(func(context.Context, snapshot.Store) error { return nil })
		s.backUp()
		s.operate()
		h := p.shell(s, onVolume)
		own, _, _ := strings.Cut(p.manifest("name: before-migration"), "  store:") // the default is enough
		take := own + "  deletionPolicy: Delete\n"
		c := s.guarded(1, etcd36, backups)
		s.create(c)
		s.ready(c)
		h.applies(take)
		h.types("kubectl wait --for=condition=Ready --timeout=10m etcdbackup/before-migration")
		b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "before-migration", Namespace: s.ns}}
		s.now(b)
		if !slices.Contains(b.Finalizers, api.FinalizerSnapshot) {
			t.Errorf("with deletionPolicy Delete it has the finalizers %v", b.Finalizers)
		}
		h.types(`kubectl patch etcdbackup before-migration --type merge -p '{"spec":{"deletionPolicy":"Retain"}}'`)
		s.awaitObject(b, "let go", func() bool { return len(b.Finalizers) == 0 })
		s.must(s.Delete(t.Context(), b))
		s.gone(b)
		s.inStore(func(ctx context.Context, store snapshot.Store) error {
			stored, err := snapshot.List(ctx, store)
			if len(stored) != 1 || stored[0].Verification == nil {
				t.Errorf("the store has %v, want the snapshot that was left there", stored)
			}
			return err
		})
	})

	t.Run("Uninstalled", func(t *testing.T) { // no operator runs
		s := newStage(t)
		h := p.shell(s, map[string]string{"quorate-system": s.ns})
		b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "before-migration", Namespace: s.ns, Finalizers: []string{api.FinalizerSnapshot}}}
		b.Spec.ClusterRef.Name = "db"
		s.create(b)
		s.must(s.Delete(t.Context(), b))
		h.types(`kubectl patch etcdbackup before-migration --type merge -p '{"metadata":{"finalizers":null}}'`)
		s.gone(b)

		pair := s.keyPair()
		h.writes("identity.txt", pair.String()+"\n")
		h.types("kubectl create secret generic age --from-file=identity.txt")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "age", Namespace: s.ns}}
		s.now(secret)
		if !bytes.Equal(secret.Data["identity.txt"], []byte(pair.String()+"\n")) {
			t.Errorf("the Secret has the keys %v", secret.Data)
		}

		rolledOut(s)
		h.prints(h.types("kubectl --namespace quorate-system rollout status deployment/quorate"), "successfully rolled out")

		h.applies(p.manifest("kind: EtcdBackupSchedule"))
		h.applies(p.manifest("kind: EtcdCluster", "cluster: prod/db"))
	})
}

// rolledOut is the Deployment of an operator, as its controller has it in the end.
func rolledOut(s *stage) {
	s.Helper()
	pod := map[string]string{"app": "quorate"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "quorate", Namespace: s.ns}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod}
	d.Spec.Template.Labels = pod
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "quorate", Image: agentImage}}
	s.create(d)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	s.must(s.Status().Update(s.Context(), d))
}

// restoringManifest leaves in db.yaml what the page tells to leave, and adds what restores.
func (h *shell) restoringManifest(adds string) {
	h.Helper()
	file := filepath.Join(h.dir, "db.yaml")
	raw, err := os.ReadFile(file)
	h.must(err)
	var whole, more map[string]any
	h.must(yaml.Unmarshal(raw, &whole))
	h.must(yaml.Unmarshal([]byte(h.here(adds)), &more))
	name := whole["metadata"].(map[string]any)
	spec := whole["spec"].(map[string]any)
	spec["bootstrap"] = more["spec"].(map[string]any)["bootstrap"]
	raw, err = yaml.Marshal(map[string]any{
		"apiVersion": whole["apiVersion"], "kind": whole["kind"], "spec": spec,
		"metadata": map[string]any{"name": name["name"], "namespace": name["namespace"]},
	})
	h.must(err)
	h.must(os.WriteFile(file, raw, 0o600))
}
