//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
)

// renderedMeta is the metadata of an object as the operator renders it.
func renderedMeta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: ns, Name: name,
		Labels: map[string]string{"app.kubernetes.io/managed-by": api.Manager, api.LabelCluster: "db", "team": "a"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdClusterKind.Kind, Name: "db", UID: "0", Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

func containersOnly(image string) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false), RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "etcd", Image: image, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}},
	}
}

// tokenVolume is one that holds a token for that audience.
func tokenVolume(audience string) corev1.Volume {
	return corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "token"}},
	}}}}
}

// makes has the operator's token create an object that it renders, with something else in it.
func makes[T client.Object](rendered func(ns string) T, change func(T)) func(context.Context, client.Client, string) error {
	return func(ctx context.Context, c client.Client, ns string) error {
		o := rendered(ns)
		change(o)
		return c.Create(ctx, o, client.DryRunAll)
	}
}

func renderedPod(ns string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: renderedMeta(ns, "db-0"), Spec: containersOnly("etcd")}
	pod.Spec.ServiceAccountName = "default" // as admission has it
	return pod
}

func renderedJob(ns string) *batchv1.Job {
	meta := renderedMeta(ns, "db-find")
	delete(meta.Labels, api.LabelCluster)
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: containersOnly("quorate")}}}
}

func renderedService(ns string) *corev1.Service {
	return &corev1.Service{ObjectMeta: renderedMeta(ns, "db-client"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{api.LabelCluster: "db"}, Ports: []corev1.ServicePort{{Port: api.PortClient}},
	}}
}

func renderedClaim(ns string) *corev1.PersistentVolumeClaim {
	meta := renderedMeta(ns, "db-0")
	meta.OwnerReferences = nil // as by default, so that it is retained
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func renderedBudget(ns string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: renderedMeta(ns, "db"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelCluster: "db"}},
	}}
}

func renderedSecret(ns string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: renderedMeta(ns, "db-server-tls"), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": {}, "tls.key": {}}}
}

// foreign are objects of other applications, one of each kind that the operator writes.
func foreign(ns string) []client.Object {
	pod, service, claim, job, budget, secret := renderedPod(ns), renderedService(ns), renderedClaim(ns), renderedJob(ns), renderedBudget(ns), renderedSecret(ns)
	all := []client.Object{pod, service, claim, job, budget, secret}
	for _, o := range all {
		o.SetName("theirs")
		o.SetLabels(map[string]string{"app": "theirs"})
		o.SetOwnerReferences(nil)
	}
	return all
}

const (
	ownOnly    = "its own objects only"
	noToken    = "has no token of the API server"
	ofVolume   = "at its level restricted only: no hostPath"
	unconfined = "is confined by seccomp, AppArmor and SELinux as its node has it"
)

// TestTokenInHand: an attacker has the operator's token, and every right that it could be given.
// What the operator renders is let through; anything else is refused, with a message that says what
// is wrong. An empty message is for what is let through.
func TestTokenInHand(t *testing.T) {
	s := newStage(t)
	operator, err := client.New(hostlet.AsOperator(apiServer), client.Options{Scheme: s.scheme})
	s.must(err)
	for _, o := range foreign(s.ns) {
		s.create(o)
	}
	system := foreign(metav1.NamespaceSystem)[0]
	s.create(system)
	member := renderedPod(s.ns)
	member.Name, member.OwnerReferences = "db-1", nil // else it is collected as garbage
	s.create(member)
	owner := s.cluster("owner", 1)
	owner.Spec.Suspend = true
	s.create(owner)
	owned := renderedPod(s.ns)
	owned.Name, owned.OwnerReferences[0].Name, owned.OwnerReferences[0].UID = "db-2", owner.Name, owner.UID
	s.create(owned)
	claim := renderedClaim(s.ns)
	claim.Name = "db-3"
	s.create(claim)
	theirs := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "theirs"}} }

	type attack struct {
		reason string
		do     func(ctx context.Context, c client.Client, ns string) error
		want   string
	}
	podWith := func(change func(*corev1.Pod)) func(context.Context, client.Client, string) error {
		return makes(renderedPod, change)
	}
	jobWith := func(change func(*corev1.PodSpec)) func(context.Context, client.Client, string) error {
		return makes(renderedJob, func(j *batchv1.Job) { change(&j.Spec.Template.Spec) })
	}
	serviceWith := func(change func(*corev1.Service)) func(context.Context, client.Client, string) error {
		return makes(renderedService, change)
	}
	attacks := map[string]attack{
		"Pod": {
			reason: "what users may ask for is let through: metadata, images, tolerations, priorities",
			do: podWith(func(p *corev1.Pod) {
				p.Annotations = map[string]string{"team": "a"}
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				p.Spec.NodeSelector = map[string]string{"pool": "etcd"}
				p.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a"}}}
				p.Spec.Volumes = []corev1.Volume{
					{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db-server-tls"}}},
					tokenVolume("sts.amazonaws.com"), // as a webhook of a cloud provider adds
				}
				p.Spec.Volumes[1].Name = "aws"
			}),
		},
		"Job":            {reason: "the agent of a backup may run as any ServiceAccount", do: jobWith(func(p *corev1.PodSpec) { p.ServiceAccountName = "backup" })},
		"Service":        {reason: "a Service for members", do: serviceWith(func(*corev1.Service) {})},
		"Claim":          {reason: "a claim has no owner by default", do: makes(renderedClaim, func(*corev1.PersistentVolumeClaim) {})},
		"Budget":         {reason: "a budget for members", do: makes(renderedBudget, func(*policyv1.PodDisruptionBudget) {})},
		"Secret":         {reason: "a Secret of mode Managed", do: makes(renderedSecret, func(*corev1.Secret) {})},
		"ServiceAccount": {reason: "members run as what spec.pod.serviceAccountName says, without its token", do: podWith(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "members" })},
		"Users": {reason: "members run as what spec.pod.securityContext says, or the platform", do: podWith(func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1)), FSGroup: new(int64(0)), SupplementalGroups: []int64{0}}
		})},
		"DeletesMember": {reason: "a Pod of a member is deleted", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Delete(ctx, member.DeepCopy(), client.DryRunAll)
		}},

		"Namespace": {reason: "a Pod in a namespace of Kubernetes itself could run beside the control plane", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Create(ctx, renderedPod(metav1.NamespaceSystem))
		}, want: "(kube-*)"},
		"SystemPod": {reason: "nor is one of those deleted", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Delete(ctx, system.DeepCopyObject().(client.Object))
		}, want: "(kube-*)"},
		"ManagedBy":   {reason: "a policy of others may overwrite a label by which nothing selects", do: podWith(func(p *corev1.Pod) { p.Labels["app.kubernetes.io/managed-by"] = "them" })},
		"Ownerless":   {reason: "what is created goes with its EtcdCluster", do: podWith(func(p *corev1.Pod) { p.OwnerReferences = nil }), want: "an owner of the group etcd.quorate.dev"},
		"Unlabelled":  {reason: "a Pod like any other", do: podWith(func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }), want: ownOnly},
		"HostNetwork": {reason: "the network of the node is the kubelet's", do: podWith(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), want: "hostNetwork"},
		"HostPID":     {reason: "the processes of the node", do: podWith(func(p *corev1.Pod) { p.Spec.HostPID = true }), want: "hostPID"},
		"HostIPC":     {reason: "the memory that processes of the node share", do: podWith(func(p *corev1.Pod) { p.Spec.HostIPC = true }), want: "hostIPC"},
		"NodeName":    {reason: "a Pod that passes the scheduler by runs on a node of the control plane", do: podWith(func(p *corev1.Pod) { p.Spec.NodeName = "control-plane" }), want: "no nodeName"},
		"HostPath": {reason: "the files of the node", do: podWith(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), want: ofVolume},
		"Privileged": {reason: "a privileged container is the node", do: podWith(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}), want: "privileged"},
		"PrivilegedInit": {reason: "so is one that runs first", do: podWith(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "first", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		}), want: "privileged"},
		"Capability": {reason: "SYS_ADMIN mounts the node's disks", do: podWith(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}), want: "adds capabilities"},
		"HostPort": {reason: "a port of the node may be another one's", do: podWith(func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}), want: "a port of its node"},
		"Token":          {reason: "a Pod with a token of the API server", do: podWith(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }), want: noToken},
		"TokenOfAccount": {reason: "a Pod of any ServiceAccount with the token of that", do: podWith(func(p *corev1.Pod) { p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = "admin", nil }), want: noToken},
		"TokenDefault":   {reason: "by default a Pod has one", do: podWith(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }), want: noToken},
		"Projected":      {reason: "a token that is asked for is none the better", do: podWith(func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{tokenVolume("")} }), want: noToken},
		"Audience": {reason: "nor is one for the API server by its name", do: podWith(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{tokenVolume("https://kubernetes.default.svc.cluster.local")}
		}), want: noToken},

		"Certificate": {reason: "a certificate tells who a Pod is, as a token does", do: jobWith(func(p *corev1.PodSpec) {
			p.ServiceAccountName = "admin"
			p.Volumes = []corev1.Volume{{Name: "certificate", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/mesh", KeyType: "ED25519", CredentialBundlePath: "bundle.pem"}},
			}}}}}
		}), want: "no podCertificate"},
		"SELinux": {reason: "a container of that type is not confined by the SELinux of its node", do: podWith(func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}
		}), want: unconfined},
		"Seccomp": {reason: "all system calls of the node's kernel", do: podWith(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
		}), want: unconfined},
		"AppArmor": {reason: "its mounts and files", do: podWith(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}
		}), want: unconfined},

		"JobHostPath": {reason: "what a Job makes is a Pod, too", do: jobWith(func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), want: ofVolume},
		"JobPrivileged": {reason: "so its containers are no more than a member's", do: jobWith(func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}), want: "privileged"},
		"JobToken": {reason: "it may name a ServiceAccount, and so must not have its token", do: jobWith(func(p *corev1.PodSpec) { p.ServiceAccountName, p.AutomountServiceAccountToken = "admin", nil }), want: noToken},
		"JobNode":  {reason: "its Pods go where the scheduler puts them", do: jobWith(func(p *corev1.PodSpec) { p.NodeName = "control-plane" }), want: "no nodeName"},

		"ExternalIP":   {reason: "a Service takes the traffic for an address of others (CVE-2020-8554)", do: serviceWith(func(o *corev1.Service) { o.Spec.ExternalIPs = []string{"192.0.2.1"} }), want: "externalIPs"},
		"LoadBalancer": {reason: "spec.services.client.type opens members to clients outside", do: serviceWith(func(o *corev1.Service) { o.Spec.Type = corev1.ServiceTypeLoadBalancer })},
		"LoadBalancerIP": {reason: "a Service takes an address of others", do: serviceWith(func(o *corev1.Service) {
			o.Spec.Type, o.Spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, "192.0.2.1"
		}), want: "no loadBalancerIP"},
		"ExternalName": {reason: "a name leads to another namespace", do: serviceWith(func(o *corev1.Service) {
			o.Spec.Type, o.Spec.ExternalName, o.Spec.Ports = corev1.ServiceTypeExternalName, "kubernetes.default.svc", nil
		}), want: "of type ClusterIP"},
		"Selector":    {reason: "a Service leads to Pods of others", do: serviceWith(func(o *corev1.Service) { o.Spec.Selector = map[string]string{"app": "theirs"} }), want: "selects members only"},
		"BudgetOfAll": {reason: "a budget holds up every drain", do: makes(renderedBudget, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }), want: "selects members only"},
		"Clone": {reason: "a claim copies another one's data", do: makes(renderedClaim, func(o *corev1.PersistentVolumeClaim) {
			o.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "theirs"}
		}), want: "starts empty"},
		"Selects": {reason: "a claim takes a volume by the labels of that", do: makes(renderedClaim, func(o *corev1.PersistentVolumeClaim) {
			o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}}
		}), want: "starts empty"},
		"LaterVolume": {reason: "of a claim that is not bound the volume can still be chosen", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"volumeName":"theirs"}}`)), client.DryRunAll)
		}, want: "starts empty"},
		"EphemeralVolume": {reason: "Kubernetes makes a claim of what is in a Pod", do: podWith(func(p *corev1.Pod) {
			spec := renderedClaim("").Spec
			spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "theirs"}
			p.Spec.Volumes = []corev1.Volume{{Name: "copy", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec},
			}}}}
		}), want: "starts empty"},
		"Volume": {reason: "a claim takes a volume that was retained for others", do: makes(renderedClaim, func(o *corev1.PersistentVolumeClaim) { o.Spec.VolumeName = "theirs" }), want: "starts empty"},
		"SecretToken": {reason: "Kubernetes fills such a Secret with a token of any ServiceAccount", do: makes(renderedSecret, func(o *corev1.Secret) {
			o.Type, o.Data, o.Annotations = corev1.SecretTypeServiceAccountToken, nil, map[string]string{corev1.ServiceAccountNameKey: "admin"}
		}), want: "of type kubernetes.io/tls"},

		"Image": {reason: "an image is what can be changed of a Pod that runs", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, theirs(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"etcd","image":"mine"}]}}`)))
		}, want: ownOnly},
		"TakeOver": {reason: "an object does not become Quorate's by being labelled by it", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, theirs(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"etcd.quorate.dev/cluster":"db"}}}`)))
		}, want: ownOnly},
		"Disown": {reason: "a Pod without its owner would be adopted by a ReplicaSet of others, which then deletes one of theirs", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, owned.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)), client.DryRunAll)
		}, want: "and keeps it"},
		"Relabel": {reason: "its labels are the user's and may change", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, owned.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"b"}}}`)), client.DryRunAll)
		}},
		"Note": {reason: "on a claim is noted whose data it holds", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Patch(ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)), client.DryRunAll)
		}},
		"Resize": {reason: "nor are its resources changed", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.SubResource("resize").Patch(ctx, theirs(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"etcd","resources":{"requests":{"cpu":"1"}}}]}}`)))
		}, want: ownOnly},
		"Evict": {reason: "Quorate evicts no Pod, not even its own", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.SubResource("eviction").Create(ctx, member.DeepCopy(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: member.Name}})
		}, want: "no subresource but pods/resize"},
		"Ephemeral": {reason: "an ephemeral container would enter a Pod that runs", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.SubResource("ephemeralcontainers").Patch(ctx, member.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"spy","image":"spy"}]}}`)))
		}, want: "no subresource but pods/resize"},
		"PodStatus": {reason: "a status of a Pod is its kubelet's", do: func(ctx context.Context, c client.Client, _ string) error {
			return c.Status().Patch(ctx, member.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`)))
		}, want: "no subresource but pods/resize"},
		"Collection": {reason: "nor are they deleted by a selector", do: func(ctx context.Context, c client.Client, ns string) error {
			return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ns), client.MatchingLabels{"app": "theirs"})
		}, want: ownOnly},
	}
	for _, o := range foreign(s.ns) {
		attacks["Delete"+strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")] = attack{
			reason: "what is others' is not deleted", want: ownOnly,
			do: func(ctx context.Context, c client.Client, _ string) error { return c.Delete(ctx, o) },
		}
		attacks["Annotate"+strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")] = attack{
			reason: "what is others' is not changed", want: ownOnly,
			do: func(ctx context.Context, c client.Client, _ string) error {
				return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
			},
		}
	}
	for name, tc := range attacks {
		t.Run(name, func(t *testing.T) {
			err := tc.do(t.Context(), operator, s.ns)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (!apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'quorate'") || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want it refused with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
