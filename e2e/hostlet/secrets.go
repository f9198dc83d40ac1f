package hostlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// project writes a Secret into the directory of its volume, as it is now. What is optional may be
// missing.
func (h *Hostlet) project(ctx context.Context, namespace string, source *corev1.SecretVolumeSource, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	secret, optional := &corev1.Secret{}, source.Optional != nil && *source.Optional
	err := h.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: source.SecretName}, secret)
	if apierrors.IsNotFound(err) && optional {
		return nil
	}
	if err != nil {
		return err
	}
	return writeFiles(secret, source, dir)
}

// writeFiles replaces each file at once, so that a process reads all of an earlier one or all of
// the new one.
func writeFiles(secret *corev1.Secret, source *corev1.SecretVolumeSource, dir string) error {
	optional := source.Optional != nil && *source.Optional
	items := source.Items
	if len(items) == 0 {
		for key := range secret.Data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		value, ok := secret.Data[item.Key]
		if !ok && !optional {
			return fmt.Errorf("references non-existent secret key: %s", item.Key)
		}
		if !ok {
			continue
		}
		file := filepath.Join(dir, item.Path)
		if err := errors.Join(os.WriteFile(file+".new", value, 0o600), os.Rename(file+".new", file)); err != nil {
			return err
		}
	}
	return nil
}

// setupSecrets writes the files of running Pods again when their Secret changes, as kubelet does
// within a minute or two: here at once. A Secret that is gone, or lacks a file, leaves the files as
// they are.
func (h *Hostlet) setupSecrets(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("secrets").
		For(&corev1.Secret{}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			secret := &corev1.Secret{}
			if err := h.client.Get(ctx, req.NamespacedName, secret); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			pods := &corev1.PodList{}
			if err := h.client.List(ctx, pods, client.InNamespace(req.Namespace)); err != nil {
				return ctrl.Result{}, err
			}
			for n := range pods.Items {
				h.refresh(&pods.Items[n], secret)
			}
			return ctrl.Result{}, nil
		}))
}

// refresh the files that a Pod has of a Secret. Where it has none yet, its start writes them.
func (h *Hostlet) refresh(pod *corev1.Pod, secret *corev1.Secret) {
	for _, v := range pod.Spec.Volumes {
		if v.Secret == nil || v.Secret.SecretName != secret.Name {
			continue
		}
		dir := filepath.Join(h.podDir(pod.UID), v.Name)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := writeFiles(secret, v.Secret, dir); err != nil {
			h.logf("%s: volume %s: %v", pod.Name, v.Name, err)
		}
	}
}
