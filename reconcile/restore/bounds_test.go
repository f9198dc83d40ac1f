package restore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/events"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
	"quorate.dev/reconcile/podstatus"
)

// TestStatusTaken: whatever the cluster says, the API server takes the status of the EtcdRestore,
// and the event.
func TestStatusTaken(t *testing.T) {
	t.Parallel()
	const mostNote = 1024 // of an event, as the API server has it
	says := func(kind string, status metav1.ConditionStatus) func(*Observed) {
		return restoring(metav1.Condition{Type: kind, Status: status, Reason: api.ReasonPodPending, Message: strings.Repeat("x", 40<<10)})
	}
	longest := func(p *api.RestorePlan) {
		p.From.Name, p.Lost, p.SetAside, p.NewMembers = strings.Repeat("s", 253), strings.Repeat("w", 1024), nil, nil
		for n := range 64 {
			p.SetAside = append(p.SetAside, fmt.Sprintf("%0253d", n))
		}
		for n := range 32 {
			p.NewMembers = append(p.NewMembers, fmt.Sprintf("%063d", n))
		}
	}
	cases := map[string]struct {
		reason string
		args   func(*Observed)
	}{
		"Ready":     {reason: "what the cluster waits for is copied", args: says(api.ConditionReady, metav1.ConditionFalse)},
		"Stalled":   {reason: "so is what a person must do", args: says(api.ConditionStalled, metav1.ConditionTrue)},
		"Blocked":   {reason: "a condition has room for it, and an event has not", args: carried(api.RestoreBlocked, strings.Repeat("x", 2048))},
		"Suspended": {reason: "so it is with the longest plan", args: all(carried(api.RestorePending, ""), told(true, longest))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, recorder := fresh(), events.NewFakeRecorder(1)
			tc.args(&o)
			look(t, recorder, o.Restore, o)
			schemaTakes(t, tc.reason, o.Restore)
			ready := o.Restore.Status.Conditions[0]
			_, note, told := strings.Cut(<-recorder.Events, " "+ready.Reason+" ")
			if !told || len(note) > mostNote {
				t.Errorf("%s: the event has %d bytes", tc.reason, len(note))
			}
			if note != podstatus.FirstLine(ready.Message) {
				t.Errorf("%s: the event says something else than the condition: %s", tc.reason, note)
			}
		})
	}
}

// schemaTakes fails where the schema refuses the status.
func schemaTakes(t *testing.T, reason string, e *api.EtcdRestore) {
	t.Helper()
	kind, err := crd.Of(api.EtcdRestoreKind.Kind)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	kind.Decode(object)
	for _, err := range kind.Create(object) {
		if strings.HasPrefix(err.Field, "status") {
			t.Errorf("%s: the schema refuses the status: %s", reason, podstatus.Within(err.Error(), 300))
		}
	}
}
