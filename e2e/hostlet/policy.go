package hostlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/templates"
)

// AsOperator is a configuration with which requests are those of the operator's ServiceAccount,
// which the policy of an installation holds to what the operator may write. Its rights are those of
// an administrator: what is refused, the policy refuses.
func AsOperator(cfg *rest.Config) *rest.Config {
	operator := rest.CopyConfig(cfg)
	operator.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:quorate-system:quorate", Groups: []string{"system:masters"}}
	return operator
}

// holdOperator applies the policy of an installation, and waits until it is in force.
func holdOperator(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(admissionregistrationv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	admin, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	raw, err := templates.Install.ReadFile("install/policy/policy.yaml")
	if err != nil {
		return err
	}
	objects, err := Objects(raw)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	operator, err := client.New(AsOperator(cfg), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	// No status tells when an API server has begun to ask a policy.
	refused := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: "foreign"}}},
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = operator.Create(ctx, refused.DeepCopy(), client.DryRunAll)
		return last != nil && strings.Contains(last.Error(), "ValidatingAdmissionPolicy 'quorate'"), nil
	})
	if err != nil {
		return fmt.Errorf("the policy for the operator is not in force after %s: %w", patience, errors.Join(err, last))
	}
	return nil
}

// Objects of a stream of YAML documents.
func Objects(stream []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		objects = append(objects, o)
	}
}
