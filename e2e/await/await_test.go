package await

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestChangeLost: a connection that is lost is no end of a wait, and what the API server says is.
func TestChangeLost(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-0", nil)
	cases := map[string]struct {
		reason string
		err    error // of each read
		want   error
	}{
		"Lost":   {reason: "the next read is over another connection", err: errors.New("stream error: stream ID 147191; PROTOCOL_ERROR; received from peer")},
		"Denied": {reason: "no read is allowed", err: forbidden, want: forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "ns"}}
			c := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.err
				},
			}).Build()
			changed, err := Change(t.Context(), c, pod, func() bool { return true })
			if changed || !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %t, %v", tc.reason, tc.want, changed, err)
			}
		})
	}
}

// TestAnswerLost: a call is made again where the connection was lost, and not where the API server
// has answered.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	reset := errors.New("stream error: stream ID 147191; PROTOCOL_ERROR; received from peer")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-0", nil)
	cases := map[string]struct {
		reason string
		errs   []error // of one call after the other
		want   error
	}{
		"Lost":   {reason: "the second call goes over another connection", errs: []error{reset, nil}},
		"Denied": {reason: "the API server would say the same again", errs: []error{forbidden, nil}, want: forbidden},
		"Both":   {reason: "only what the API server says is an answer", errs: []error{reset, reset, forbidden}, want: forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			err := Answer(t.Context(), func() error {
				calls++
				return tc.errs[calls-1]
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %v after %d calls", tc.reason, tc.want, err, calls)
			}
		})
	}
}
