//go:build e2e

package e2e

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// Where the volume of snapshots is, and that which is taken by hand.
const (
	backupsClaim = "backups"
	backupsMount = "/backups"
	handFile     = backupsMount + "/by-hand.db"
)

// saveByHand runs etcdctl in a Pod, and returns for how long it ran.
func (s *stage) saveByHand(c *api.EtcdCluster, member string) time.Duration {
	s.Helper()
	yes, no, user := true, false, int64(65532)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "by-hand"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "save", Image: render.Image(c, c.Spec.Version), ImagePullPolicy: corev1.PullIfNotPresent,
				Command:      []string{"etcdctl", "snapshot", "save", handFile, "--endpoints=" + c.ClientURL(member)},
				VolumeMounts: []corev1.VolumeMount{{Name: backupsClaim, MountPath: backupsMount}},
				// As the agent has: with nothing it would get next to no processor on a busy
				// machine.
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: backupsClaim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: backupsClaim},
			}}},
		},
	}
	ended := observe(s.T, "etcdctl", handFile, c.ClientURL(member))
	s.create(pod)
	s.await(pod, "done", func() bool { return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed })
	if pod.Status.Phase != corev1.PodSucceeded {
		s.Fatalf("etcdctl snapshot save has failed: %v", pod.Status.ContainerStatuses)
	}
	took := ended()[0].took
	if err := s.Delete(s.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		s.Fatal(err)
	}
	s.gone(pod)
	return took
}

// restoredByHand is a cluster by hand whose members get their data by etcdutl, from the snapshot
// that was taken by hand.
func (s *stage) restoredByHand(c *api.EtcdCluster) []*unstructured.Unstructured {
	s.Helper()
	objects := s.byHand(c)
	var names []string
	for n := range int(*c.Spec.Replicas) {
		names = append(names, c.MemberName(n))
	}
	for _, o := range objects {
		if o.GetKind() != "Pod" {
			continue
		}
		spec := o.Object["spec"].(map[string]any)
		etcd := spec["containers"].([]any)[0].(map[string]any)
		spec["initContainers"] = []any{map[string]any{
			"name": "restore", "resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}}, "image": etcd["image"], "imagePullPolicy": "IfNotPresent", "securityContext": etcd["securityContext"],
			"command": []any{
				"etcdutl", "snapshot", "restore", handFile, "--data-dir=/var/lib/etcd/data", "--name=" + o.GetName(),
				"--initial-cluster=" + render.Bootstrap(c, names), "--initial-cluster-token=" + c.Name, "--initial-advertise-peer-urls=" + c.PeerURL(o.GetName()),
				"--bump-revision=1000000000", "--mark-compacted", // as Quorate does
			},
			"volumeMounts": []any{
				map[string]any{"name": "data", "mountPath": "/var/lib/etcd"},
				map[string]any{"name": backupsClaim, "mountPath": backupsMount, "readOnly": true},
			},
		}}
		spec["volumes"] = append(spec["volumes"].([]any), map[string]any{
			"name": backupsClaim, "persistentVolumeClaim": map[string]any{"claimName": backupsClaim},
		})
	}
	return objects
}

// untilServing is the time from the request for these objects to three members of that cluster that
// the kubelet finds ready.
func (s *stage) untilServing(cluster string, objects ...*unstructured.Unstructured) time.Duration {
	s.Helper()
	s.synced()
	w := s.watchPods()
	begun := time.Now()
	s.applyAll(objects...)
	s.untilPods(w, 3, "ready", func(pod *corev1.Pod) bool {
		return isReady(pod) && pod.Labels["app.kubernetes.io/instance"] == cluster
	})
	return time.Since(begun)
}

// clear removes a cluster with its volumes, of whatever it was made, before anything else is
// measured.
func (s *stage) clear(c *api.EtcdCluster) {
	s.Helper()
	if c.UID != "" {
		if err := s.Delete(s.Context(), c); err != nil {
			s.Fatal(err)
		}
		s.gone(c)
	}
	in := []client.DeleteAllOfOption{client.InNamespace(s.ns), client.MatchingLabels{"app.kubernetes.io/instance": c.Name}}
	if err := s.DeleteAllOf(s.Context(), &corev1.Pod{}, append(in, client.GracePeriodSeconds(1))...); err != nil {
		s.Fatal(err)
	}
	for _, label := range []string{api.LabelCluster, byHandGroup + "cluster"} {
		err := s.DeleteAllOf(s.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(s.ns), client.MatchingLabels{label: c.Name})
		if err != nil {
			s.Fatal(err)
		}
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := s.List(s.Context(), volumes); err != nil {
		s.Fatal(err)
	}
	for i := range volumes.Items {
		if claim := volumes.Items[i].Spec.ClaimRef; claim != nil && claim.Namespace == s.ns && strings.HasPrefix(claim.Name, c.Name+"-") {
			s.gone(&volumes.Items[i])
		}
	}
}

// synced has all on the disk that was written before: what is measured does not wait for it.
func (s *stage) synced() {
	s.Helper()
	if _, err := onNode(s.Context(), "sync"); err != nil {
		s.Fatal(err)
	}
}
