package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestTryResize: the API server is asked whether a Pod's node has what the spec asks for, only where that would be asked for in
// earnest, and what it says is a fact.
func TestTryResize(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(causes ...metav1.StatusCause) error {
		err := apierrors.NewForbidden(pods, "db-0", errors.New("no"))
		err.ErrStatus.Details.Causes = causes
		return err
	}
	broken := errors.New("the API server is away")
	cases := map[string]struct {
		reason  string
		change  membership.Change
		givenUp bool
		answer  error
		tries   int
		want    membership.Change
		err     error
	}{
		"NodeTooSmall": {
			reason: "no resize will ever do", change: membership.ChangeResources,
			answer: forbidden(metav1.StatusCause{Type: nodeCapacity}), tries: 3, want: membership.ChangePod,
		},
		"Quota": {
			reason: "a Pod that is recreated gets no more", change: membership.ChangeResources, answer: forbidden(), tries: 3, want: membership.ChangeResources,
		},
		"Taken":   {reason: "it is asked for then", change: membership.ChangeResources, tries: 3, want: membership.ChangeResources},
		"Away":    {reason: "that says nothing of nodes", change: membership.ChangeResources, answer: broken, tries: 3, want: membership.ChangeResources, err: broken},
		"Image":   {reason: "no cpu is to change", change: membership.ChangeImage, answer: broken, want: membership.ChangeImage},
		"GivenUp": {reason: "it was put back, and waits for another spec", change: membership.ChangeResources, givenUp: true, answer: broken, want: membership.ChangeResources},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			if tc.givenUp {
				c.Status.FailedChange = &api.FailedChange{Generation: c.Generation, Message: "in vain"}
			}
			for n := range seen.Instances {
				seen.Instances[n].Pod.Change = tc.change
				seen.pods[seen.Instances[n].Name].Spec.Containers = []corev1.Container{{Name: "etcd"}}
			}
			tries := make(chan write, len(seen.Instances))
			s := newStub(t, func(w write) error { tries <- w; return tc.answer })
			if err := s.tryResize(t.Context(), c, seen); !errors.Is(err, tc.err) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			if len(tries) != tc.tries || len(s.writes) > 0 {
				t.Errorf("%s: %d tries, want %d; %d writes", tc.reason, len(tries), tc.tries, len(s.writes))
			}
			for _, i := range seen.Instances {
				if diff := cmp.Diff(tc.want, i.Pod.Change); diff != "" {
					t.Errorf("%s: %s: -want +got:\n%s", tc.reason, i.Name, diff)
				}
			}
		})
	}
}
