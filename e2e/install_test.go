//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"quorate.dev/e2e/hostlet"
	"quorate.dev/render"
)

const (
	operatorImage = "quorate:dev"
	// stallAfter is short, so that what can never succeed is called so soon.
	stallAfter = 15 * time.Second
)

// installed is what the tests install: an operator for the whole cluster, with TLS.
var installed = render.InstallOptions{}

// install installs the operator as a user does, and waits until it runs.
func install(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	return ctx, installOperator(ctx, installed)
}

// installOperator applies the installation manifests and waits for the Deployment. Flags that make
// tests faster are added, and the image's ID, so that an operator from before gives way to the one
// that was just built.
func installOperator(ctx context.Context, options render.InstallOptions) error {
	id, err := run(ctx, "docker", "image", "inspect", "--format={{.Id}}", operatorImage)
	if err != nil {
		return err
	}
	objects, err := manifests(options)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			if err := adjust(o, strings.TrimSpace(id)); err != nil {
				return fmt.Errorf("adjust the Deployment: %w", err)
			}
		}
		if err := kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("e2e"), client.ForceOwnership); err != nil {
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			if err := awaitEstablished(ctx, o.GetName()); err != nil {
				return err
			}
		}
	}
	return awaitOperator(ctx, namespaceOf(options))
}

func namespaceOf(options render.InstallOptions) string {
	if options.Namespace == "" {
		return render.InstallNamespace
	}
	return options.Namespace
}

// manifests are the objects of an installation.
func manifests(options render.InstallOptions) ([]*unstructured.Unstructured, error) {
	stream, err := render.Install(options)
	if err != nil {
		return nil, err
	}
	return hostlet.Objects(stream)
}

func adjust(deployment *unstructured.Unstructured, image string) error {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	operator := containers[0].(map[string]any)
	operator["args"] = append(operator["args"].([]any), "--stall-after="+stallAfter.String(), "--log-level=debug")
	return errors.Join(
		unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"),
		unstructured.SetNestedField(deployment.Object, image, "spec", "template", "metadata", "annotations", "quorate.dev/image-id"),
	)
}

func awaitEstablished(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return await(ctx, crd, "established", func() bool {
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

// awaitOperator waits until the Deployment has rolled out.
func awaitOperator(ctx context.Context, namespace string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quorate"}}
	return await(ctx, d, "rolled out", func() bool {
		s := d.Status
		want := *d.Spec.Replicas
		return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
	})
}
