package contract

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// Stage is a test that has an API server.
type Stage interface {
	testing.TB
	client.WithWatch
}

// Watch the status of an EtcdCluster until the test or step ends that began it, and fail that where
// it breaks the contract. It returns what kstatus has made of the cluster so far, each change once.
func Watch(t Stage, c *api.EtcdCluster) (seen func() []status.Status) {
	t.Helper()
	var mu sync.Mutex
	var sequence []status.Status
	Follow(t, c, func(object *api.EtcdCluster) {
		computed, breaches := Check(object)
		for _, breach := range breaches {
			t.Errorf("%s: %s", breach, Describe(object))
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sequence) == 0 || sequence[len(sequence)-1] != computed {
			sequence = append(sequence, computed)
		}
	})
	return func() []status.Status {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sequence)
	}
}

// Available fails the test where the cluster is seen not to be Available, from now until the test
// or step ends that began it, or until stop is called. That what a condition says at one moment was
// so all the time no single look can show.
func Available(t Stage, c *api.EtcdCluster) (stop func()) {
	t.Helper()
	return Follow(t, c, func(object *api.EtcdCluster) {
		if !meta.IsStatusConditionTrue(object.Status.Conditions, api.ConditionAvailable) {
			t.Errorf("not available: %s", Describe(object))
		}
	})
}

// Describe the status of an EtcdCluster in one line, for the person that has to find out what went
// wrong.
func Describe(c *api.EtcdCluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d, observed %d, clusterID %q", c.Generation, c.Status.ObservedGeneration, c.Status.ClusterID)
	for _, condition := range c.Status.Conditions {
		fmt.Fprintf(&b, "; %s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	for _, m := range c.Status.Members {
		fmt.Fprintf(&b, "; %s %s %s %s", m.Name, m.ID, m.Role, m.Health)
	}
	return b.String()
}
