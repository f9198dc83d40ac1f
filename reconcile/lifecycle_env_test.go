//go:build env

package reconcile_test

import (
	"context"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		version  string
		replicas int32
		medium   api.Medium
	}{
		"Three35":     {reason: "three members of etcd 3.5 form one cluster", version: etcd35, replicas: 3},
		"Three36":     {reason: "three members of etcd 3.6 form one cluster", version: etcd36, replicas: 3},
		"Three37":     {reason: "three members of etcd 3.7 form one cluster", version: etcd37, replicas: 3},
		"One":         {reason: "a single member needs no other", version: etcd36, replicas: 1},
		"Five":        {reason: "five start together as three do", version: etcd36, replicas: 5},
		"ThreeMemory": {reason: "tmpfs needs no claims", version: etcd36, replicas: 3, medium: api.MediumMemory},
	}
	for name, tc := range share.Of(t, cases, 4) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", tc.replicas)
			c.Spec.Version, c.Spec.Storage.Medium = tc.version, tc.medium
			seen := contract.Watch(s, c)
			s.create(c)
			cli := s.ready(c)
			s.put(cli, "key", "value")
			s.want(cli, "key", "value")

			if c.Status.Version != tc.version || c.Status.ReadyReplicas != tc.replicas || c.Status.Leader == "" {
				t.Errorf("%s: status is %s, version %s, %d ready, leader %q", tc.reason, contract.Describe(c), c.Status.Version, c.Status.ReadyReplicas, c.Status.Leader)
			}
			if diff := cmp.Diff([]status.Status{status.InProgressStatus, status.CurrentStatus}, seen()); diff != "" {
				t.Errorf("%s: kstatus on the way: -want +got:\n%s", tc.reason, diff)
			}
			if c.Status.Operation != nil {
				t.Errorf("the intent of the first start is still there: %v", c.Status.Operation)
			}
			for _, claim := range s.claims(c) {
				if got := claim.Annotations[api.AnnotationMemberID]; got == "" || got != identityOf(c).Members[claim.Name] {
					t.Errorf("claim %s says member %q, status %q", claim.Name, got, identityOf(c).Members[claim.Name])
				}
			}
			budget := &policyv1.PodDisruptionBudget{}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(c), budget); err != nil {
				t.Fatal(err)
			}
			if got, want := budget.Spec.MinAvailable.IntVal, tc.replicas/2+1; got != want {
				t.Errorf("the disruption budget keeps %d members, want %d", got, want)
			}
		})
	}
}

// TestFence: once the cluster has formed, its running Pods are told that they must find their data
// when they start. A disk that comes back empty under a running Pod then stops its member instead
// of making it a new, empty one with an old name.
func TestFence(t *testing.T) {
	t.Parallel()
	for _, version := range share.List(t, []string{etcd35, etcd36, etcd37}, 1, func(version string) string { return version }) {
		t.Run(version, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 1) // the worst case: no other could contradict it
			c.Spec.Version = version
			s.create(c)
			s.put(s.ready(c), "key", "value")
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
			s.awaitPod(pod, "fenced", func() bool { return pod.Annotations[api.AnnotationInitialClusterState] == "existing" })

			if err := s.hostlet.Wipe(t.Context(), s.ns, "db-0"); err != nil {
				t.Fatal(err)
			}
			s.await(c, "not serving", func() bool { return is(c, api.ConditionAvailable, metav1.ConditionFalse) })
			s.awaitPod(pod, "restarted", func() bool {
				return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount >= 2
			})
			if pod.Status.ContainerStatuses[0].Ready || is(c, api.ConditionAvailable, metav1.ConditionTrue) {
				t.Errorf("a member started empty under its old name: %s", contract.Describe(c))
			}
		})
	}
}

func TestDeletedPodsComeBack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spec   func(*api.EtcdClusterSpec) // changed while no operator runs, before they are deleted
		delete []string
	}{
		"One": {
			reason: "a deleted Pod comes back as the same member on its volume",
			delete: []string{"db-1"},
		},
		"All": {
			reason: "all Pods deleted at once come back as the same cluster",
			delete: []string{"db-0", "db-1", "db-2"},
		},
		"SmallerSpec": {
			reason: "what a member has served with is no less right for a volume of the spec that is smaller: it is made, and then changed",
			spec: func(s *api.EtcdClusterSpec) {
				s.Storage.Size, s.Options.QuotaBackendSize = resource.MustParse("512Mi"), new(resource.MustParse("256Mi"))
			},
			delete: []string{"db-0", "db-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			crash := s.operate()
			c := s.cluster("db", 3)
			c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("768Mi"))}
			contract.Watch(s, c)
			s.create(c)
			s.put(s.ready(c), "key", "value")
			before, uids := identityOf(c), s.podUIDs(c)

			noticed := s.once(c, func(seen *api.EtcdCluster) bool { return is(seen, api.ConditionReady, metav1.ConditionFalse) })
			if tc.spec != nil {
				crash()
				s.change(c, func() { tc.spec(&c.Spec); c.Spec.Storage.ChangePolicy = api.ChangeReplace })
				s.change(c, func() { c.Spec.Storage.ChangePolicy = api.ChangeExpand }) // the volumes stay as they are
			}
			for _, name := range tc.delete {
				s.deletePod(name)
			}
			if tc.spec != nil {
				s.operate()
			}
			noticed("not ready")
			s.want(s.ready(c), "key", "value")
			if diff := cmp.Diff(before, identityOf(c)); diff != "" {
				t.Errorf("%s: identity changed: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(uids, s.podUIDs(c)); diff == "" {
				t.Errorf("%s: no Pod is new", tc.reason)
			}
		})
	}
}

func TestHibernate(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	contract.Watch(s, c)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	before := identityOf(c)

	s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
	s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	if pods, claims := s.pods(c), s.claims(c); len(pods) != 0 || len(claims) != 3 {
		t.Errorf("hibernated with %d Pods and %d claims, want 0 and 3", len(pods), len(claims))
	}
	if c.Status.Replicas != 0 || !is(c, api.ConditionAvailable, metav1.ConditionFalse) {
		t.Errorf("hibernated: %s", contract.Describe(c))
	}

	s.change(c, func() { c.Spec.Replicas = new(int32(3)) })
	s.want(s.ready(c), "key", "value")
	if diff := cmp.Diff(before, identityOf(c)); diff != "" {
		t.Errorf("identity changed over hibernation: -want +got:\n%s", diff)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		retention *api.Retention
		flip      *api.Retention
		kept      bool
	}{
		"Default": {reason: "volumes outlive the EtcdCluster by default, and give a new one its data", kept: true},
		"Delete":  {reason: "with Delete they go with it", retention: &api.Retention{WhenDeleted: api.RetentionDelete}},
		"Flipped": {
			reason:    "a change of mind counts at once",
			retention: &api.Retention{WhenDeleted: api.RetentionDelete}, flip: &api.Retention{WhenDeleted: api.RetentionRetain},
			kept: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			c.Spec.Storage.Retention = tc.retention
			s.create(c)
			s.put(s.ready(c), "key", "value")
			before := identityOf(c)
			if tc.flip != nil {
				s.change(c, func() { c.Spec.Storage.Retention = tc.flip })
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-2", Namespace: s.ns}}
				s.awaitObject(claim, "without owner", func() bool { return len(claim.OwnerReferences) == 0 })
				s.ready(c)
				for _, claim := range s.claims(c) {
					s.awaitObject(&claim, "without owner", func() bool { return len(claim.OwnerReferences) == 0 })
				}
			}

			if err := s.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			for _, pod := range s.pods(c) {
				s.gone(&pod)
			}
			if !tc.kept {
				for _, claim := range s.claims(c) {
					s.gone(&claim)
				}
			}
			again := s.cluster("db", 3)
			contract.Watch(s, again)
			s.create(again)
			cli := s.ready(again)
			if !tc.kept {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if r, err := cli.Get(ctx, "key"); err != nil || len(r.Kvs) != 0 {
					t.Errorf("%s: a new cluster has %v, error %v", tc.reason, r, err)
				}
				return
			}
			s.want(cli, "key", "value")
			if diff := cmp.Diff(before, identityOf(again)); diff != "" {
				t.Errorf("%s: identity changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDataLost: losing volumes never gives a silently empty cluster.
func TestDataLost(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		lose   []string
	}{
		"All":      {reason: "nothing is left to start", lose: []string{"db-0", "db-1", "db-2"}},
		"Majority": {reason: "one of three cannot make a quorum", lose: []string{"db-0", "db-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			contract.Watch(s, c)
			s.create(c)
			s.put(s.ready(c), "key", "value")
			before := identityOf(c)

			for _, name := range tc.lose {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
				if err := s.Delete(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range tc.lose {
				s.deletePod(name)
			}
			message := s.stalled(c, api.ReasonDataLost)
			s.await(c, "not available", func() bool { return is(c, api.ConditionAvailable, metav1.ConditionFalse) })
			t.Logf("%s: %s", name, message)
			if diff := cmp.Diff(before, identityOf(c)); diff != "" {
				t.Errorf("%s: identity changed: -want +got:\n%s", tc.reason, diff)
			}
			for _, pod := range s.pods(c) {
				for _, lost := range tc.lose {
					if pod.Name == lost && pod.DeletionTimestamp.IsZero() {
						t.Errorf("%s: %s was started again without its data", tc.reason, lost)
					}
				}
			}
		})
	}
}

func TestSuspend(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	contract.Watch(s, c)
	s.create(c)
	s.put(s.ready(c), "key", "value")

	s.change(c, func() { c.Spec.Suspend = true })
	s.await(c, "seen", func() bool { return c.Status.ObservedGeneration == c.Generation })
	if !is(c, api.ConditionReady, metav1.ConditionTrue) {
		t.Errorf("a healthy cluster is not ready because it is suspended: %s", contract.Describe(c))
	}
	s.deletePod("db-1")
	s.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}})
	s.await(c, "suspended and not ready", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionFalse) && c.Status.Replicas == 2
	})
	s.want(s.etcd(c), "key", "value")
	pod := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "db-1"}, pod); !apierrors.IsNotFound(err) {
		t.Errorf("a suspended cluster got its Pod back: %v", err)
	}

	s.change(c, func() { c.Spec.Suspend = false })
	s.want(s.ready(c), "key", "value")
}

func (s *stage) deletePod(name string) {
	s.Helper()
	if err := s.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) podUIDs(c *api.EtcdCluster) map[string]string {
	uids := map[string]string{}
	for _, pod := range s.pods(c) {
		uids[pod.Name] = string(pod.UID)
	}
	return uids
}
