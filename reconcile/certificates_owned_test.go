package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestSecretsWithoutOwner: a label is no proof. What a user may have created beforehand is never
// used, nor its key kept, and the message says what to type.
func TestSecretsWithoutOwner(t *testing.T) {
	t.Parallel()
	type world struct {
		c       *api.EtcdCluster
		secrets map[string]*corev1.Secret
		running bool
	}
	type want struct {
		Written []string
		Reason  string
		Says    []string // are part of the message
		Dials   bool
	}
	const (
		unused = "is not used"
		patch  = `kubectl patch secret db-client-ca --namespace=ns --type=merge --patch='{"metadata":{"ownerReferences":[{"apiVersion":"etcd.quorate.dev/v1alpha1","kind":"EtcdCluster","name":"db","uid":"cluster","controller":true,"blockOwnerDeletion":true}]}}'`
	)
	foreign := string(membership.ForeignObject)
	orphan := func(w *world, names ...string) {
		for _, name := range names {
			w.secrets[name].OwnerReferences = nil
		}
	}
	planted := func(w *world, names ...string) { // another cluster's, of which the user has the keys
		others := secrets(t, managed())
		for _, name := range names {
			w.secrets[name] = others[name]
		}
		orphan(w, names...)
	}
	peers := []string{"db-peer-ca", "db-peer-tls"}
	cases := map[string]struct {
		reason string
		change func(*world)
		want   want
	}{
		"PlantedAuthority": {
			reason: "all that a new cluster trusts would be known to that user",
			change: func(w *world) {
				clear(w.secrets)
				planted(w, "db-client-ca")
				w.c.Status.TLS, w.running = nil, false
			},
			want: want{Written: peers, Reason: foreign, Says: []string{"Secret db-client-ca", unused, "kubectl delete secret db-client-ca --namespace=ns", patch}},
		},
		"PlantedWhileStopped": {
			reason: "the same where a cluster is to start with another authority",
			change: func(w *world) { planted(w, "db-client-ca"); w.running = false },
			want:   want{Reason: foreign, Says: []string{"Secret db-client-ca", unused, patch}, Dials: true},
		},
		"PlantedAll": {
			reason: "they go together, and are not known all the same",
			change: func(w *world) { planted(w, everySecret...); w.c.Status.TLS, w.running = nil, false },
			want:   want{Reason: foreign, Says: []string{"Secret db-client-ca", unused}},
		},
		"PlantedLeaf": {
			reason: "its key would be kept when it is issued again",
			change: func(w *world) { planted(w, "db-server-tls") },
			want:   want{Reason: foreign, Says: []string{"Secret db-server-tls", unused, "kubectl delete secret db-server-tls --namespace=ns"}, Dials: true},
		},
		"PlantedTrust": {
			reason: "a certificate of another authority, which it trusts beside ours",
			change: func(w *world) {
				ca := w.secrets["db-operator-tls"].Data[api.SecretCA]
				planted(w, "db-operator-tls")
				data := w.secrets["db-operator-tls"].Data
				data[api.SecretCA] = slices.Concat(ca, data[api.SecretCA])
			},
			want: want{Reason: foreign, Says: []string{"Secret db-operator-tls", unused}},
		},
		"PlantedOperator": {
			reason: "the operator asks nothing with what another one has made",
			change: func(w *world) { planted(w, "db-operator-tls") },
			want:   want{Reason: foreign, Says: []string{"Secret db-operator-tls", unused}},
		},
		"OwnersRemoved": {
			reason: "a tool that removes owner references: the status names the authorities",
			change: func(w *world) { orphan(w, everySecret...) },
			want:   want{Written: everySecret, Dials: true},
		},
		"OwnersRemovedSuspended": {
			reason: "nothing is written then",
			change: func(w *world) { orphan(w, everySecret...); w.c.Spec.Suspend = true },
			want:   want{Dials: true},
		},
		"PutBack": {
			reason: "from a backup that has no metadata",
			change: func(w *world) {
				orphan(w, "db-client-ca")
				w.secrets["db-client-ca"].Labels = nil
			},
			want: want{Written: []string{"db-client-ca"}, Dials: true},
		},
		"Restored": {
			reason: "a restored namespace has neither owners nor a status: a person knows where the Secrets come from",
			change: func(w *world) { orphan(w, everySecret...); w.c.Status.TLS, w.running = nil, false },
			want:   want{Reason: foreign, Says: []string{"Secret db-client-ca", patch}},
		},
		"Orphaned": {
			reason: "after kubectl delete --cascade=orphan members run, and their authority was never restored: to delete it stops them all",
			change: func(w *world) { orphan(w, everySecret...); w.c.Status.TLS = nil },
			want:   want{Reason: foreign, Says: []string{"If you neither restored it nor kept it when you deleted an earlier EtcdCluster, run: kubectl delete", patch}},
		},
		"RestoredAndPatched": {
			reason: "once a person has typed the commands, what these authorities have issued is known",
			change: func(w *world) { orphan(w, leaves...); w.c.Status.TLS, w.running = nil, false },
			want:   want{Written: leaves, Dials: true},
		},
		"LostAndUnowned": {
			reason: "what the lost authority has issued is used as long as it is good",
			change: func(w *world) { orphan(w, leaves...); delete(w.secrets, "db-client-ca") },
			want:   want{Written: leaves, Dials: true},
		},
		"LostAndPlantedLeaf": {
			reason: "nothing is issued again while the authority is lost, so that is not what to type",
			change: func(w *world) { planted(w, "db-server-tls"); delete(w.secrets, "db-client-ca") },
			want: want{Reason: api.ReasonAuthorityLost, Dials: true, Says: []string{
				"Secret db-client-ca with the certificate authority of spec.tls.client is missing, and Secret db-server-tls, which it would have to issue again, cannot be used (it has no owner",
				"Restore Secret db-client-ca from a backup",
			}},
		},
		"LostAndUnknown": {
			reason: "what the status does not name may be the last certificate that members trust",
			change: func(w *world) { orphan(w, leaves...); delete(w.secrets, "db-client-ca"); w.c.Status.TLS = nil },
			want:   want{Written: []string{"db-peer-tls"}, Reason: api.ReasonAuthorityLost, Says: []string{"Restore Secret db-client-ca from a backup"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{c: managed(), running: true}
			w.secrets = secrets(t, w.c)
			tc.change(&w)
			var objects []client.Object
			for _, name := range slices.Sorted(maps.Keys(w.secrets)) {
				objects = append(objects, w.secrets[name])
			}
			if w.running {
				objects = append(objects, withTLS(newPod("db-0")))
			}
			s := newStub(t, nil, objects...)
			found, err := s.secure(t.Context(), w.c, noon.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			got := want{Dials: len(found.configs) > 0}
			written := map[string]bool{}
			for _, write := range s.writes {
				written[write.Name] = true
			}
			got.Written = slices.Sorted(maps.Keys(written))
			if step, ok := obstacle(found.blocked, membership.Step{}); ok {
				got.Reason = string(step.Reason)
			}
			for _, words := range tc.want.Says {
				if strings.Contains(text(found.blocked), words) {
					got.Says = append(got.Says, words)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s\n%s", tc.reason, diff, text(found.blocked))
			}
		})
	}
}
