package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestRotationsTold: where both authorities begin a rotation in one pass, each has its event. The
// recorder counts two of one reason about the same objects as one, and drops the second text.
func TestRotationsTold(t *testing.T) {
	t.Parallel()
	c := managed()
	var objects []client.Object
	for _, secret := range secrets(t, c) {
		objects = append(objects, secret)
	}
	s := newStub(t, nil, objects...)
	c.Spec.TLS.Client.RotateAuthority, c.Spec.TLS.Peer.RotateAuthority = "a", "a"

	created := make(chan string, 10)
	server := fake.NewClientset()
	server.PrependReactor("create", "events", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		event := action.(clientgotesting.CreateAction).GetObject().(*eventsv1.Event)
		created <- event.Note
		return false, nil, nil
	})
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: server.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Recorder = broadcaster.NewRecorder(s.Client.Scheme(), api.Manager)
	if found, err := s.secure(t.Context(), c, noon.Add(time.Hour)); err != nil || found.blocked != nil {
		t.Fatal(err, found.blocked)
	}

	want := []string{
		"Rotating the certificate authority of spec.tls.client, step 1 of 3: members and applications must trust the new authority as well",
		"Rotating the certificate authority of spec.tls.peer, step 1 of 3: members must trust the new authority as well",
	}
	var got []string
	for range want {
		select {
		case note := <-created:
			got = append(got, note)
		case <-time.After(10 * time.Second):
			t.Fatalf("no further event within 10 s, after %q", got)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
