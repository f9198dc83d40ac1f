//go:build env

package v1alpha1

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

// With the tag env a real API server is asked for every row of every table of this package, and for
// every manifest of the documents: what is said offline is what it says.

// asked counts the rows.
var asked atomic.Int64

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	ctx := context.Background() //nolint:forbidigo // TestMain has the context of no test
	env, err := startServer(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	all := flag.Lookup("test.run").Value.String() == ""
	if least := int64(400); all && asked.Load() < least { // rows that nothing asks for must not pass
		fmt.Fprintf(os.Stderr, "the API server was asked for %d rows, want %d or more\n", asked.Load(), least)
		code = 1
	}
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

func startServer(ctx context.Context) (*envtest.Environment, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		var err error
		if assets, err = node.Assets(ctx, ""); err != nil {
			return nil, fmt.Errorf("get the API server: %w", err)
		}
	}
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../templates/install/crd"}, ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 2 * time.Minute, // a busy machine takes longer than envtest's 20 s
	}
	kubeAPIServer, etcd := env.ControlPlane.GetAPIServer(), &envtest.Etcd{}
	kubeAPIServer.Path, etcd.Path = filepath.Join(assets, "kube-apiserver"), filepath.Join(assets, "etcd")
	env.ControlPlane.Etcd = etcd
	if err := child.Do(func() error { _, err := env.Start(); return err }, &kubeAPIServer.Path, &etcd.Path); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	env.Config.QPS = -1
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	server = func(t *testing.T, obj, old map[string]any) []string {
		asked.Add(1)
		return says(t, c, &unstructured.Unstructured{Object: obj}, &unstructured.Unstructured{Object: old})
	}
	return env, nil
}

// says is what the API server says when the object is created, or when it takes the place of an
// earlier one.
func says(t *testing.T, c client.Client, obj, old *unstructured.Unstructured) []string {
	t.Helper()
	if old.Object == nil {
		obj.SetNamespace(metav1.NamespaceDefault)
		return messagesOf(t, c.Create(t.Context(), obj, client.DryRunAll))
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "row-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	obj.SetNamespace(ns.Name)
	old.SetNamespace(ns.Name)
	status, hasStatus := old.Object["status"]
	if err := c.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if hasStatus {
		old.Object["status"] = status
		if err := c.Status().Update(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	obj.SetUID(old.GetUID())
	obj.SetResourceVersion(old.GetResourceVersion())
	return messagesOf(t, c.Update(t.Context(), obj, client.DryRunAll))
}

// messagesOf are what a user reads, but for that the rules were not evaluated.
func messagesOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil || refused.Status().Reason != metav1.StatusReasonInvalid {
		return []string{err.Error()}
	}
	var messages []string
	for _, cause := range refused.Status().Details.Causes {
		if !strings.Contains(cause.Message, "some validation rules were not checked") {
			messages = append(messages, cause.Field+": "+cause.Message)
		}
	}
	slices.Sort(messages)
	return messages
}
