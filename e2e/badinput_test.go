//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

// badInput is an EtcdCluster that cannot become what it asks for, and how that ends.
type badInput struct {
	reason  string
	disk    bool          // the row needs a volume; without, it is faster
	object  client.Object // of another owner
	spoil   func(*api.EtcdClusterSpec)
	stalled string
	message string
	mend    func(*api.EtcdClusterSpec) // nil where the spec is right
	provide client.Object              // what was missing
}

// TestBadInput: what only a running Kubernetes can show to be wrong ends in Stalled, with a message
// that says what to do. Once the user has done it the cluster becomes ready, and its neighbour has
// served all along.
func TestBadInput(t *testing.T) {
	t.Parallel()
	rows := map[string]badInput{
		"missing-storage-class": {
			reason:  "a storage class that does not exist never gives a volume",
			disk:    true,
			spoil:   func(s *api.EtcdClusterSpec) { s.Storage.StorageClassName = new("nosuch") },
			stalled: api.ReasonPodPending,
			message: forming(`missing-storage-class-0 cannot be scheduled: its PersistentVolumeClaim missing-storage-class-0 is not bound: the storage class that it asks for must exist, and its provisioner must run`),
			provide: &storagev1.StorageClass{
				ObjectMeta:        metav1.ObjectMeta{Name: "nosuch", Labels: map[string]string{stageLabel: ""}},
				Provisioner:       "rancher.io/local-path",
				VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
			},
		},
		"missing-image": {
			reason:  "an image that no registry has is never pulled",
			disk:    true,
			spoil:   func(s *api.EtcdClusterSpec) { s.Image = &api.Image{Repository: "registry.invalid/etcd"} },
			stalled: api.ReasonPodPending,
			message: forming(`missing-image-0 cannot pull the image registry.invalid/etcd:v3.6.16`),
			mend:    func(s *api.EtcdClusterSpec) { s.Image = nil },
		},
		"missing-version": {
			reason:  "a version that was never released has no image",
			spoil:   func(s *api.EtcdClusterSpec) { s.Version = "3.6.999" },
			stalled: api.ReasonPodPending,
			message: forming(`missing-version-0 cannot pull the image gcr.io/etcd-development/etcd:v3.6.999`),
			mend:    func(s *api.EtcdClusterSpec) { s.Version = node.Etcd36 },
		},
		"impossible-scheduling": {
			reason: "no node has the label",
			disk:   true,
			spoil: func(s *api.EtcdClusterSpec) {
				s.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"disk": "nosuch"}}
			},
			stalled: api.ReasonPodPending,
			message: forming(`impossible-scheduling-0 cannot be scheduled: ` + unschedulable("node(s) didn't match Pod's node affinity/selector")),
			mend:    func(s *api.EtcdClusterSpec) { s.Scheduling = nil },
		},
		"too-much-memory": {
			reason: "no node is as large",
			spoil: func(s *api.EtcdClusterSpec) {
				s.Resources = &api.Resources{Requests: quantities(corev1.ResourceMemory, "4Ti")}
			},
			stalled: api.ReasonPodPending,
			message: forming(`too-much-memory-0 cannot be scheduled: ` + unschedulable("Insufficient memory")),
			mend:    func(s *api.EtcdClusterSpec) { s.Resources = nil },
		},
		"missing-priority-class": {
			reason:  "the API server refuses a Pod of a priority that does not exist",
			spoil:   func(s *api.EtcdClusterSpec) { s.Scheduling = &api.Scheduling{PriorityClassName: "nosuch"} },
			stalled: api.ReasonRefused,
			message: `the API server refuses what the spec asks for: pods "missing-priority-class-0" is forbidden: no PriorityClass with name nosuch was found`,
			mend:    func(s *api.EtcdClusterSpec) { s.Scheduling = nil },
		},
		"bad-flag-value": {
			reason: "it is refused before anything is created",
			spoil: func(s *api.EtcdClusterSpec) {
				s.Options = &api.Options{Flags: map[string]string{"max-request-bytes": "lots"}}
			},
			stalled: api.ReasonInvalidSpec,
			message: `spec.options.flags: max-request-bytes must be an integer of at least 0, not "lots"`,
			mend:    func(s *api.EtcdClusterSpec) { s.Options = nil },
		},
		"useless-flag-value": {
			reason: "etcd would exit with it, and Quorate knows that",
			spoil: func(s *api.EtcdClusterSpec) {
				s.Options = &api.Options{Flags: map[string]string{"enable-distributed-tracing": "true", "distributed-tracing-sampling-rate": "2000000"}}
			},
			stalled: api.ReasonInvalidSpec,
			message: `spec.options.flags: distributed-tracing-sampling-rate must be an integer from 0 to 1000000, not "2000000": etcd can hang, exit or use a whole cpu with that (docs/options.md)`,
			mend:    func(s *api.EtcdClusterSpec) { s.Options = nil },
		},
		"foreign-service": {
			reason:  "another application's Service has the name of the one that gives members theirs",
			object:  &corev1.Service{ObjectMeta: foreign("foreign-service"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
			stalled: api.ReasonForeignObject,
			message: `Service foreign-service exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name`,
		},
		"foreign-client-service": {
			reason:  "another application's Service has the name of the one for clients",
			object:  &corev1.Service{ObjectMeta: foreign("foreign-client-service-client"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
			stalled: api.ReasonForeignObject,
			message: `Service foreign-client-service-client exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name`,
		},
		"foreign-budget": {
			reason:  "another application's disruption budget has the name of ours",
			object:  &policyv1.PodDisruptionBudget{ObjectMeta: foreign("foreign-budget")},
			stalled: api.ReasonForeignObject,
			message: `PodDisruptionBudget foreign-budget exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name`,
		},
		"foreign-volume": {
			reason: "another application's volume has the name of the first member's",
			disk:   true,
			object: &corev1.PersistentVolumeClaim{ObjectMeta: foreign("foreign-volume-0"), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: quantities(corev1.ResourceStorage, "1Gi")},
			}},
			stalled: api.ReasonForeignObject,
			message: `PersistentVolumeClaim foreign-volume-0 exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name`,
		},
		"foreign-pod": {
			reason:  "another application's Pod has the name of the first member's",
			object:  restrictedPod("foreign-pod-0", "etcdctl", "watch", "nothing"),
			stalled: api.ReasonForeignObject,
			message: `Pod foreign-pod-0 exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name`,
		},
		"unknown-flag": {
			reason: "a flag of 3.5 that 3.7 does not know any more is refused before anything is created",
			spoil: func(s *api.EtcdClusterSpec) {
				s.Version = node.Etcd37
				s.Options = &api.Options{Flags: map[string]string{"experimental-max-learners": "2"}}
			},
			stalled: api.ReasonInvalidSpec,
			message: `spec.options.flags: etcd 3.7.3 has no flag experimental-max-learners; leave it out`,
			mend:    func(s *api.EtcdClusterSpec) { s.Options = nil },
		},
	}

	var neighbour *running
	ctx := testenv.Test(t, features.New("a neighbour").
		Assess("runs", step(func(s *stage) { neighbour = s.run("neighbour") })).
		Feature())
	stories := make([]features.Feature, 0, len(rows))
	for name, row := range share.Of(t, rows, 3) {
		stories = append(stories, row.story(name))
	}
	refused := testenv.WithContext(ctx)
	refused.TestInParallel(t, stories...)
	refused.Test(t, features.New("the neighbour").
		Assess("has run all along", step(func(s *stage) { s.undisturbed(neighbour) })).
		Feature())
}

func (row badInput) story(name string) features.Feature {
	var c *api.EtcdCluster
	story := features.New(name).Assess("is refused: "+row.reason, step(func(s *stage) {
		if row.object != nil {
			row.object.SetNamespace(s.ns)
			s.create(row.object)
		}
		c = s.cluster(name, 1)
		if !row.disk {
			c.Spec.Storage.Medium = api.MediumMemory
		}
		if row.spoil != nil {
			row.spoil(&c.Spec)
		}
		contract.Watch(s, c)
		s.create(c)
		if got := otherNodes.ReplaceAllString(s.stalled(c, row.stalled), ""); got != row.message {
			s.Errorf("stalled with the message\n%s\nwant\n%s", got, row.message)
		}
	}))
	return story.Assess("is mended", step(func(s *stage) {
		if row.object != nil {
			if err := s.Delete(s.Context(), row.object); err != nil {
				s.Fatal(err)
			}
		}
		if row.provide != nil {
			s.create(row.provide)
			s.Cleanup(func() { _ = kube.Delete(context.WithoutCancel(s.Context()), row.provide) }) // the next run says if it is still there
		}
		if row.mend != nil {
			s.change(c, func() { row.mend(&c.Spec) })
		}
		s.ready(c)
	})).Feature()
}

// forming is the message of a first start that does not come about.
func forming(problem string) string {
	return "waiting for the first members to form a cluster: " + problem + ". Waiting has not helped: remove the cause, or correct the spec. Nothing was served yet: it is also safe to delete the EtcdCluster and its PersistentVolumeClaims, and apply it again"
}

// unschedulable is what the scheduler says of a Pod for which the first node is not right, without
// what it says of the workers: they have their taint, and TestNodes drains them meanwhile.
func unschedulable(why string) string {
	return fmt.Sprintf("0/%d nodes are available: 1 %s", *workers+1, why)
}

var otherNodes = regexp.MustCompile(`, \d+ node\(s\) (had untolerated taint\(s\)|were unschedulable)`)

// running is a cluster that nothing is to happen to.
type running struct {
	cluster *api.EtcdCluster
	pods    map[string]string // UIDs
}

// run starts a small cluster with something in it.
func (s *stage) run(name string) *running {
	s.Helper()
	r := &running{cluster: s.cluster(name, 1), pods: map[string]string{}}
	s.create(r.cluster)
	s.ready(r.cluster)
	s.put(s.etcd(r.cluster), "key", "value")
	for _, pod := range s.pods(r.cluster) {
		r.pods[pod.Name] = string(pod.UID)
	}
	return r
}

// undisturbed fails unless the same processes still serve what they had.
func (s *stage) undisturbed(r *running) {
	s.Helper()
	for _, pod := range s.pods(r.cluster) {
		if r.pods[pod.Name] != string(pod.UID) || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			s.Errorf("Pod %s was recreated or has restarted", pod.Name)
		}
	}
	s.ready(r.cluster)
	s.want(s.etcd(r.cluster), "key", "value")
}

// foreign is the metadata of an object that another application made.
func foreign(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "another"}}
}

func quantities(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}
