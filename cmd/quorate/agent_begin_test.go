package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestAgentBeginMember runs what the Pod of a first member has as its init container, on the data
// directory of an etcd that has ended before it had voted.
func TestAgentBeginMember(t *testing.T) {
	t.Parallel()
	c := &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"},
		Spec:       api.EtcdClusterSpec{Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")}},
	}
	pod, err := render.Pod(c, render.Member{Name: "db-0", Version: "3.6.16", BootstrapSize: 1, InitialClusterState: render.StateNew, Again: true, AgentImage: "quorate:dev"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		state  string
		left   bool
	}{
		"Begins": {reason: "the cluster has never formed", state: render.StateNew},
		"Formed": {reason: "its etcd must find its data from then on", state: render.StateExisting, left: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			writeFile(t, filepath.Join(data, "member", "snap", "db"), "")
			db, err := bbolt.Open(filepath.Join(data, "member", "snap", "db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			w, err := wal.Create(zap.NewNop(), filepath.Join(data, "member", "wal"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			var args []string
			for _, arg := range pod.Spec.InitContainers[0].Args {
				args = append(args, strings.NewReplacer("/var/lib/etcd/data", data, "$(INITIAL_CLUSTER_STATE)", tc.state).Replace(arg))
			}
			cmd := root()
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append(args, "--result="+filepath.Join(t.TempDir(), "result")))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = os.Stat(data)
			if diff := cmp.Diff(tc.left, err == nil); diff != "" {
				t.Errorf("%s: the data directory is there: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
