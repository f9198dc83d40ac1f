//go:build env

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	api "quorate.dev/api/v1alpha1"
)

// survivorOf restores from the data of a member; of the only one that is left where none is named.
func survivorOf(member string) func(*api.EtcdRestoreSpec) {
	return func(e *api.EtcdRestoreSpec) {
		e.Source = api.RestoreSource{Survivor: &api.Survivor{Member: member}}
	}
}

// TestInPlaceSurvivor: two of three volumes are gone for good, and there is no snapshot. The
// cluster goes on with what the third member has, which is all that was ever acknowledged.
func TestInPlaceSurvivor(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c := s.cluster("db", 3)
	s.create(c)
	s.ready(c)
	kept := data{}
	for range 5 {
		s.write(c, kept)
	}
	before := identityOf(c)
	s.loseMajority(c)
	s.await(c, "with the one that is left, and how far it is", func() bool {
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return stalled != nil && strings.Contains(stalled.Message, "create an EtcdRestore from the data of a member (spec.source.survivor), db-1 (term ") && strings.HasSuffix(stalled.Message, "docs/restore.md#which-way-back")
	})

	wrong := s.etcdRestore("wrong", survivorOf("db-0"))
	s.create(wrong)
	s.saysStalled(wrong, api.ReasonRestoreFailed, "spec.source.survivor.member is db-0, which has no volume", "one of those that are left, db-1")
	s.must(s.Delete(t.Context(), wrong))
	s.gone(wrong)

	e := s.etcdRestore("back", survivorOf(""), onHold)
	s.create(e)
	uids, shown := s.uids(c), s.shows(e)
	if shown.RaftTerm == 0 || shown.RaftIndex == 0 || !strings.HasPrefix(shown.Lost, fmt.Sprintf("writes that were acknowledged without db-1: log entries after %d,", shown.RaftIndex)) {
		t.Errorf("the plan is %+v", shown)
	}
	s.await(c, "pointing to the EtcdRestore", func() bool {
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return stalled != nil && strings.HasSuffix(stalled.Message, "EtcdRestore back is to restore the cluster: its conditions say what it waits for. To do something else, delete it first")
	})
	if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
		t.Errorf("suspended: Pods or claims changed: -want +got:\n%s", diff)
	}
	s.resume(e)
	s.restores(e)
	s.ready(c)
	s.asPlanned(c, e, []string{"db-1"})
	if r := e.Status.Restored; r == nil || r.Name != "member/db-1" || r.ClusterID != before.Cluster {
		t.Errorf("status.restored is %+v, want the data of db-1", r)
	}
	now := identityOf(c)
	if now.Cluster == before.Cluster {
		t.Errorf("the cluster has the ID of before, %s", now.Cluster)
	}
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
	if names := memberNames(c); len(names) != 3 || slices.ContainsFunc(names, func(name string) bool { return before.Members[name] != "" }) {
		t.Errorf("members are %v, want three new ones", names)
	}
	if aside := s.aside(c); !slices.Equal(aside, []string{"db-1"}) {
		t.Errorf("set aside are %v, want db-1", strings.Join(aside, " "))
	}
}
