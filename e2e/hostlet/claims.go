package hostlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// protection keeps a claim while Pods use it. The API server's admission adds
// it to every claim; taking it away is a controller's task.
const protection = "kubernetes.io/pvc-protection"

// createStorageClass makes the default class that a claim gets when it names none.
// There is another one whose volumes can grow, and two whose drivers do not let them.
func (h *Hostlet) createStorageClass(ctx context.Context) error {
	for name, annotations := range map[string]map[string]string{
		"standard": {"storageclass.kubernetes.io/is-default-class": "true"}, Expandable: nil, Refusing: nil, Failing: nil,
	} {
		class := &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name, Annotations: annotations},
			Provisioner:          "quorate.dev/hostlet",
			VolumeBindingMode:    new(storagev1.VolumeBindingWaitForFirstConsumer),
			AllowVolumeExpansion: new(name != "standard"),
		}
		if err := h.client.Create(ctx, class); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass: %w", err)
		}
	}
	return nil
}

// Expandable is the name of a storage class whose volumes can grow. Refusing is that of one that
// takes larger claims, and whose driver finds that it cannot give them more. That of Failing finds
// a quota used up: it tries again, and says so in events alone.
const (
	Expandable = "expandable"
	Refusing   = "refusing"
	Failing    = "failing"
)

// tryAgain is how long after another the driver of Failing tries.
const tryAgain = time.Second

// expand gives a bound claim what it asks for. The API server lets a claim ask for more only where
// its class allows that.
func (h *Hostlet) expand(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	pvc := &corev1.PersistentVolumeClaim{}
	if err := h.client.Get(ctx, key, pvc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	asked := pvc.Spec.Resources.Requests.Storage()
	if pvc.Status.Phase != corev1.ClaimBound || pvc.Status.Capacity.Storage().Cmp(*asked) >= 0 {
		return ctrl.Result{}, nil
	}
	tells := func(status corev1.ClaimResourceStatus) {
		pvc.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	}
	again := ctrl.Result{}
	switch {
	case *pvc.Spec.StorageClassName == Failing:
		tried := conditionOf(pvc, corev1.PersistentVolumeClaimResizing)
		if rest := time.Until(tried.LastTransitionTime.Add(tryAgain)); rest > 0 {
			return ctrl.Result{RequeueAfter: rest}, nil
		}
		tells(corev1.PersistentVolumeClaimControllerResizeInProgress)
		*tried = corev1.PersistentVolumeClaimCondition{Type: tried.Type, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
		again.RequeueAfter = tryAgain
	case *pvc.Spec.StorageClassName != Refusing:
		pvc.Status.Capacity = pvc.Spec.Resources.Requests
	case pvc.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible:
		return ctrl.Result{}, nil
	default:
		tells(corev1.PersistentVolumeClaimControllerResizeInfeasible)
	}
	if err := client.IgnoreNotFound(h.client.Status().Update(ctx, pvc)); err != nil {
		return ctrl.Result{}, fmt.Errorf("expand claim %s: %w", key, err)
	}
	return again, nil
}

// conditionOf is a condition of a claim, which is added where it is not there.
func conditionOf(pvc *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for n := range pvc.Status.Conditions {
		if pvc.Status.Conditions[n].Type == kind {
			return &pvc.Status.Conditions[n]
		}
	}
	pvc.Status.Conditions = append(pvc.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind})
	return &pvc.Status.Conditions[len(pvc.Status.Conditions)-1]
}

// noteUse writes into the status of a bound claim whether a Pod refers to it, as Kubernetes does
// from 1.37 on: whenever a Pod comes or goes, its claim is another one.
func (h *Hostlet) noteUse(ctx context.Context, key types.NamespacedName) error {
	pvc, pods := &corev1.PersistentVolumeClaim{}, &corev1.PodList{}
	if err := h.client.Get(ctx, key, pvc); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := h.client.List(ctx, pods, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	now := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue, Reason: "NoPodsUsingPVC", LastTransitionTime: metav1.Now(),
	}
	if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return slices.Contains(claimNames(&pod), key.Name) }) {
		now.Status, now.Reason = corev1.ConditionFalse, "PodUsingPVC"
	}
	said := conditionOf(pvc, now.Type)
	if pvc.DeletionTimestamp != nil || pvc.Status.Phase != corev1.ClaimBound || said.Status == now.Status {
		return nil
	}
	*said = now
	if err := client.IgnoreNotFound(h.client.Status().Update(ctx, pvc)); err != nil {
		return fmt.Errorf("note whether claim %s is used: %w", key, err)
	}
	return nil
}

// setupClaims lets deleted claims go once no Pod uses them, and bound ones grow.
func (h *Hostlet) setupClaims(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("claims").
		For(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []ctrl.Request {
			names := claimNames(pod.(*corev1.Pod))
			requests := make([]ctrl.Request, 0, len(names))
			for _, name := range names {
				requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}})
			}
			return requests
		})).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			again, err := h.expand(ctx, req.NamespacedName)
			return again, errors.Join(h.release(ctx, req.NamespacedName), err, h.noteUse(ctx, req.NamespacedName))
		}))
}

func claimNames(pod *corev1.Pod) []string {
	var claims []string
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
			claims = append(claims, source.ClaimName)
		}
	}
	return claims
}

// bindClaims binds the Pod's claims as their first consumer. It returns what
// stands in the way, in the scheduler's words, or nothing once all are bound.
func (h *Hostlet) bindClaims(ctx context.Context, pod *corev1.Pod) (obstacle string, err error) {
	for _, name := range claimNames(pod) {
		pvc := &corev1.PersistentVolumeClaim{}
		err := h.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, pvc)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("persistentvolumeclaim %q not found", name), nil
		case err != nil:
			return "", fmt.Errorf("get claim %s: %w", name, err)
		case pvc.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name), nil
		case pvc.Status.Phase == corev1.ClaimBound:
			continue
		}
		class := ""
		if pvc.Spec.StorageClassName != nil {
			class = *pvc.Spec.StorageClassName
		}
		err = h.client.Get(ctx, types.NamespacedName{Name: class}, &storagev1.StorageClass{})
		if class == "" || apierrors.IsNotFound(err) {
			return fmt.Sprintf("storageclass %q of persistentvolumeclaim %q not found", class, name), nil
		}
		if err != nil {
			return "", fmt.Errorf("get StorageClass %s: %w", class, err)
		}
		if err := h.bind(ctx, pvc); err != nil {
			return "", fmt.Errorf("bind claim %s: %w", name, err)
		}
	}
	return "", nil
}

// bind the claim to a volume that is a directory here and no object there.
func (h *Hostlet) bind(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	if pvc.Spec.VolumeName == "" {
		pvc.Spec.VolumeName = "pvc-" + string(pvc.UID)
		if err := h.client.Update(ctx, pvc); err != nil {
			return err
		}
	}
	pvc.Status.Phase = corev1.ClaimBound
	pvc.Status.AccessModes = pvc.Spec.AccessModes
	pvc.Status.Capacity = pvc.Spec.Resources.Requests
	return h.client.Status().Update(ctx, pvc)
}

// release a deleted claim, and its data with it, unless a Pod on the node uses
// it. A Pod that is not scheduled yet will not get a claim that is going.
func (h *Hostlet) release(ctx context.Context, key types.NamespacedName) error {
	pvc := &corev1.PersistentVolumeClaim{}
	if err := h.client.Get(ctx, key, pvc); err != nil {
		return client.IgnoreNotFound(err)
	}
	if pvc.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(pvc, protection) {
		return nil
	}
	// A cache may miss the Pod that has just been bound.
	pods := &corev1.PodList{}
	if err := h.reader.List(ctx, pods, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" && slices.Contains(claimNames(&pods.Items[i]), key.Name) {
			return nil
		}
	}
	if err := os.RemoveAll(h.volumeDir(pvc.UID)); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(pvc, protection)
	if err := client.IgnoreNotFound(h.client.Update(ctx, pvc)); err != nil {
		return fmt.Errorf("release claim %s: %w", key, err)
	}
	return nil
}

// mounts of the container that runs, their directories made.
func (h *Hostlet) mounts(ctx context.Context, pod *corev1.Pod, c *corev1.Container, env []corev1.EnvVar) ([]mount, error) {
	dirs := map[string]string{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.EmptyDir != nil:
			dirs[v.Name] = filepath.Join(h.podDir(pod.UID), v.Name)
		case v.PersistentVolumeClaim != nil:
			pvc := &corev1.PersistentVolumeClaim{}
			key := types.NamespacedName{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}
			if err := h.client.Get(ctx, key, pvc); err != nil {
				return nil, fmt.Errorf("get claim %s: %w", key.Name, err)
			}
			dirs[v.Name] = h.volumeDir(pvc.UID)
		case v.Secret != nil:
			dirs[v.Name] = filepath.Join(h.podDir(pod.UID), v.Name)
			if err := h.project(ctx, pod.Namespace, v.Secret, dirs[v.Name]); err != nil {
				return nil, fmt.Errorf("volume %s: %w", v.Name, err)
			}
		case v.DownwardAPI != nil: // empty: only etcd's own directories are read
			dirs[v.Name] = filepath.Join(h.podDir(pod.UID), v.Name)
		default:
			return nil, fmt.Errorf("volume %s: only claims, Secrets, emptyDir and downwardAPI are supported", v.Name)
		}
	}
	var mounts []mount
	for _, m := range c.VolumeMounts {
		subPath, err := subPath(m, env)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(dirs[m.Name], subPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		mounts = append(mounts, mount{path: m.MountPath, dir: dir})
	}
	return mounts, nil
}

// subPath of a mount. As in kubelet, an expression with a variable that has no value keeps the
// container from being created.
func subPath(m corev1.VolumeMount, env []corev1.EnvVar) (string, error) {
	for _, ref := range reference.FindAllString(m.SubPathExpr, -1) {
		if name := strings.Trim(ref, "$()"); expand(ref, env) == ref || expand(ref, env) == "" {
			return "", fmt.Errorf("missing value for %s", name)
		}
	}
	return cmp.Or(m.SubPath, expand(m.SubPathExpr, env)), nil
}
