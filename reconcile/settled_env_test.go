//go:build env

package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// settled waits until the cluster has what its spec asks for and nothing is left to do, and fails
// unless all that could tell otherwise agree: what was acknowledged is there, etcd's members are
// those of the spec, in one cluster and with the same data, and each has its volume and there is no
// other.
func (s *stage) settled(c *api.EtcdCluster, kept data) {
	s.Helper()
	size := int(*c.Spec.Replicas)
	s.await(c, "settled", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == size && c.Status.Operation == nil
	})
	members := memberNames(c)
	for _, pod := range s.pods(c) {
		if !slices.Contains(members, pod.Name) {
			s.gone(&pod)
		}
	}
	for _, claim := range s.claims(c) {
		switch {
		case slices.Contains(members, claim.Name), claim.Annotations[api.AnnotationRetired] != "", claim.Annotations[api.AnnotationSetAside] != "":
		case claim.DeletionTimestamp.IsZero():
			s.Errorf("claim %s is of no member, and it is not deleted: members are %v", claim.Name, members)
		default:
			s.gone(&claim)
		}
	}
	var pods, claims []string
	for _, pod := range s.pods(c) {
		pods = append(pods, pod.Name)
	}
	for _, claim := range s.claims(c) {
		if claim.Annotations[api.AnnotationRetired] == "" && claim.Annotations[api.AnnotationSetAside] == "" {
			claims = append(claims, claim.Name)
		}
	}
	if c.Spec.Storage.Medium == api.MediumMemory { // the Pods are the volumes
		if len(claims) > 0 {
			s.Errorf("there are claims of members whose data is in memory: %v", claims)
		}
		claims = pods
	}
	for what, names := range map[string][]string{"Pods": pods, "claims": claims} {
		if diff := cmp.Diff(members, slices.Sorted(slices.Values(names))); diff != "" {
			s.Errorf("%s are not those of the members: -want +got:\n%s", what, diff)
		}
	}
	s.sound(c, members, kept)
}

// said is what one member says of the cluster.
type said struct {
	Cluster string
	Members []string
	Alarms  []string
	Hash    uint32
	Lost    data
}

// sound asks each member for everything.
func (s *stage) sound(c *api.EtcdCluster, members []string, kept data) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var revision int64
	all := map[string]said{}
	for _, pod := range s.pods(c) {
		endpoint := endpoint(c)(&pod)
		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: patience, Logger: zap.NewNop(), TLS: s.clientTLS(c)})
		if err != nil {
			s.Fatal(err)
		}
		tells := said{Lost: data{}}
		// A linearizable read: it has everything that was acknowledged before, and so has the next
		// member at that revision.
		r, err := etcd.Get(ctx, "key", clientv3.WithPrefix())
		if err != nil {
			s.Fatalf("read from %s: %v", pod.Name, err)
		}
		maps.Copy(tells.Lost, kept)
		for _, kv := range r.Kvs {
			if kept[string(kv.Key)] == string(kv.Value) {
				delete(tells.Lost, string(kv.Key))
			}
		}
		revision = max(revision, r.Header.Revision)
		tells.Cluster = strconv.FormatUint(r.Header.ClusterId, 16)
		list, err := etcd.MemberList(ctx)
		if err != nil {
			s.Fatalf("list members at %s: %v", pod.Name, err)
		}
		for _, m := range list.Members {
			tells.Members = append(tells.Members, strings.TrimSuffix(m.Name+" learner", map[bool]string{false: " learner"}[m.IsLearner]))
		}
		slices.Sort(tells.Members)
		status, err := etcd.Status(ctx, endpoint)
		if err != nil {
			s.Fatalf("status of %s: %v", pod.Name, err)
		}
		tells.Alarms = status.Errors
		hash, err := etcd.HashKV(ctx, endpoint, revision)
		if err != nil {
			s.Fatalf("hash of %s: %v", pod.Name, err)
		}
		tells.Hash = hash.Hash
		all[pod.Name] = tells
		_ = etcd.Close() // it was only read from
	}
	want := map[string]said{}
	for _, name := range members {
		want[name] = said{Cluster: c.Status.ClusterID, Members: members, Hash: all[members[0]].Hash, Lost: data{}}
	}
	if diff := cmp.Diff(want, all); diff != "" {
		s.Errorf("members do not agree: -want +got:\n%s", diff)
	}
}

// picture is all that the operator has made of the cluster, in words that are the same for every
// cluster of that spec: members by their rank, without what names an incarnation or tells of
// versions that ran before.
func (s *stage) picture(c *api.EtcdCluster) []string {
	s.Helper()
	rank := map[string]string{}
	for n, name := range memberNames(c) {
		rank[name] = "db-#" + strconv.Itoa(n)
	}
	var lines []string
	add := func(kind string, o client.Object, spec any) {
		if o.GetAnnotations()[api.AnnotationRetired] != "" {
			return
		}
		annotations := maps.Clone(o.GetAnnotations())
		for _, own := range []string{api.AnnotationBootstrap, api.AnnotationClusterID, api.AnnotationMemberID, api.AnnotationJoin, api.AnnotationReplays} {
			delete(annotations, own)
		}
		var owners []string
		for _, owner := range o.GetOwnerReferences() {
			owners = append(owners, owner.Kind+" "+owner.Name)
		}
		raw, err := json.Marshal([]any{kind, o.GetName(), o.GetLabels(), annotations, owners, spec})
		if err != nil {
			s.Fatal(err)
		}
		raw = trust.ReplaceAll(sum.ReplaceAll(raw, []byte("sum")), []byte("$1"))
		line := uid.ReplaceAllString(token.ReplaceAllString(strings.ReplaceAll(string(raw), s.ns, "ns"), ""), "uid")
		lines = append(lines, memberName.ReplaceAllStringFunc(line, func(name string) string { return rank[name] }))
	}
	for _, pod := range s.pods(c) {
		add("Pod", &pod, withoutGate(pod.Spec))
	}
	for _, claim := range s.claims(c) {
		add("PersistentVolumeClaim", &claim, claim.Spec)
	}
	ours := []client.ListOption{client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}}
	services, budgets := &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}
	for _, list := range []client.ObjectList{services, budgets} {
		if err := s.List(s.Context(), list, ours...); err != nil {
			s.Fatal(err)
		}
	}
	for _, service := range services.Items {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
		add("Service", &service, service.Spec)
	}
	for _, budget := range budgets.Items {
		add("PodDisruptionBudget", &budget, budget.Spec)
	}
	for _, condition := range c.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	slices.Sort(lines)
	return lines
}

// withoutGate is the spec of a Pod as if its member had never been one to come, which waited at a
// gate (render.Provisioner): a Pod that is recreated over the data has none. Nor does it matter
// whether the Pod of a first member was the first one (render.ContainerClearUnvoted).
func withoutGate(spec corev1.PodSpec) corev1.PodSpec {
	const gate = "start"
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == gate })
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == render.ContainerClearUnvoted })
	mounts := &spec.Containers[0].VolumeMounts
	*mounts = slices.DeleteFunc(*mounts, func(m corev1.VolumeMount) bool { return m.Name == gate })
	return spec
}

var (
	uid        = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	sum        = regexp.MustCompile(`[0-9a-f]{64}`)                     // of a snapshot, which is another one in every run
	trust      = regexp.MustCompile(`(tls\.(?:client|peer)=)[0-9a-f]+`) // of authorities, of which no two are the same
	token      = regexp.MustCompile(`"--initial-cluster-token=[^"]*",`) // first members have one
	memberName = regexp.MustCompile(`\bdb-[0-9]+\b`)
)
