package reconcile

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// provisionDB3 makes the volume of a member to come.
var provisionDB3 = membership.Step{Action: membership.Provision, Members: []string{"db-3"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}

// labelledVolumes is a world of objects with the label team=a, with which the members have served;
// the spec asks for team=bad since, which the API server takes for no volume and no Pod.
func labelledVolumes(t *testing.T) world {
	t.Helper()
	w := serving(t)
	w.cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "a"}}
	for name := range w.pods {
		w.pods[name] = w.pod(name)
		w.pods[name].Labels["team"] = "a"
		metav1.SetMetaDataLabel(&w.claims[name].ObjectMeta, "team", "a")
		w.claims[name].Annotations[api.AnnotationServed] = servedTeamA
	}
	w.address()
	w.managed()
	for _, claim := range w.claims {
		manage(t, claim)
	}
	w.cluster.Spec.AdditionalMetadata.Labels["team"] = "bad"
	return w
}

// TestRefusedVolumeLabels: the API server refuses the labels of the spec on volumes and Pods. Their
// labels stay as they are, and what Quorate itself writes on them is written.
func TestRefusedVolumeLabels(t *testing.T) {
	t.Parallel()
	const volume = "PersistentVolumeClaim "
	lost := func(w *world) { // db-2
		delete(w.pods, "db-2")
		delete(w.claims, "db-2")
	}
	cases := map[string]struct {
		reason string
		world  func(*world)
		denied []string        // kinds; nil: volumes and Pods
		step   membership.Step // where it is empty that which is planned, alone
		object string          // that is written
		labels map[string]string
		marks  map[string]string // some of its annotations
	}{
		"Update": {
			reason: "an update announces itself on the volume",
			world:  other,
			object: volume + "db-0",
			labels: map[string]string{"team": "a"},
			marks:  map[string]string{api.AnnotationNext: "3.6.16"},
		},
		"UpdateInPlace": {
			reason: "so does one that recreates no Pod",
			world:  func(w *world) { w.cluster.Spec.Version = "3.6.17" },
			object: volume + "db-0",
			labels: map[string]string{"team": "a"},
			marks:  map[string]string{api.AnnotationNext: "3.6.17"},
		},
		"JoinVolumesAlone": {
			reason: "Pods are taken with the labels of the spec, and have them",
			world: func(w *world) {
				lost(w)
				w.claims["db-0"].Annotations[api.AnnotationServed] = strings.Replace(servedTeamA, `"a"`, `"bad"`, 1)
				manage(w.t, w.claims["db-0"])
			},
			denied: []string{"PersistentVolumeClaim"},
			step:   provisionDB3,
			object: volume + "db-3",
			labels: map[string]string{"team": "a"},
		},
		"JoinPodsOwn": {
			reason: "what Pods alone get may mean something else on a volume, as a label for a tool for backups does",
			world: func(w *world) {
				lost(w)
				w.claims["db-0"].Annotations[api.AnnotationServed] = `{"version":"3.6.16","tls":{"mode":"Disabled"},"metadata":{"labels":{"team":"a","velero.io/exclude-from-backup":"true"}}}`
				manage(w.t, w.claims["db-0"])
			},
			step:   provisionDB3,
			object: volume + "db-3",
			labels: map[string]string{"team": "a", "velero.io/exclude-from-backup": ""},
		},
		"Join": {
			reason: "a member that comes gets a volume like that of the others",
			world:  lost,
			step:   provisionDB3,
			object: volume + "db-3",
			labels: map[string]string{"team": "a"},
			marks:  map[string]string{api.AnnotationJoin: api.JoinPending},
		},
		"Record": {
			reason: "a member that has proved itself is recorded",
			world: func(w *world) {
				w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", servedTeamA
				manage(w.t, w.claims["db-0"])
			},
			step:   membership.Step{Action: membership.Record, Members: []string{"db-0"}},
			object: volume + "db-0",
			labels: map[string]string{"team": "a"},
			marks:  map[string]string{api.AnnotationNext: ""},
		},
		"LetIn": {
			reason: "a member that serves again is in the Service for clients again",
			world:  func(w *world) { w.pods["db-0"].Labels[api.LabelClients] = api.ClientsOut; w.managed() },
			step:   membership.Step{Action: membership.None, Reason: membership.Healthy},
			object: "Pod db-0",
			labels: map[string]string{"team": "a", api.LabelClients: api.ClientsIn},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := labelledVolumes(t)
			tc.world(&w)
			s, seen := w.look(t)
			if tc.denied == nil {
				tc.denied = []string{"PersistentVolumeClaim", "Pod"}
			}
			s.deniesTeam(tc.denied...)
			carryOut := s.act
			if tc.step.Action == "" {
				tc.step, carryOut = membership.Plan(desired(w.cluster), seen.Observed), s.take
			}
			s.draining.begun.Store(client.ObjectKeyFromObject(w.cluster), drained{tc.step.Members, time.Now().Add(-time.Minute)})
			seen.touched = touched(w.cluster, seen, tc.step)
			err := carryOut(t.Context(), w.cluster.DeepCopy(), seen, tc.step)
			if !refuses(err) && tc.step.Action != membership.Update {
				t.Errorf("%s: that labels are refused is not told: %v", tc.reason, err)
			}
			if s.labels[tc.object] == nil {
				t.Fatalf("%s: %s is not written: %v, %v", tc.reason, tc.object, s.writes, err)
			}
			for key, want := range tc.labels {
				if got := s.labels[tc.object][key]; got != want {
					t.Errorf("%s: label %s: want %q, got %q", tc.reason, key, want, got)
				}
			}
			for key, want := range tc.marks {
				if got := s.marks[tc.object][key]; got != want {
					t.Errorf("%s: annotation %s: want %q, got %q", tc.reason, key, want, got)
				}
			}
		})
	}
}

// TestRefusedNextMember: while one member proves that it runs well, the one that is updated next
// leaves the Service for clients. What the API server refuses of it by then is not begun either.
func TestRefusedNextMember(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	other(&w)
	w.address()
	w.managed()
	w.pods["db-0"].Labels[api.LabelClients] = api.ClientsOut
	s, seen := w.lookThrough(t, noChanges)
	step := membership.Plan(desired(w.cluster), seen.Observed)
	c := w.cluster.DeepCopy()
	if err := s.act(t.Context(), c, seen, step); step.Action != membership.Update || !refuses(err) {
		t.Fatalf("want an update that is refused, got %s, %v", step, err)
	}
	if c.Status.Operation != nil {
		t.Errorf("a change that is refused is written down as begun: %+v", c.Status.Operation)
	}
}
