package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// atRevisions has the members at these revisions and entries of the log; those beyond do not
// answer.
func atRevisions(revisions ...int64) func(*observed) {
	return func(seen *observed) {
		for n := range seen.Instances {
			e := &seen.Instances[n].Endpoint
			if n >= len(revisions) || revisions[n] == 0 {
				*e = membership.Endpoint{}
				continue
			}
			e.Revision, e.RaftIndex, e.RaftTerm = revisions[n], uint64(revisions[n])+100, 4
		}
	}
}

func withoutQuorum(seen *observed) { seen.Reach = membership.ReachSome }

// ofThis is monday, as it was taken of the cluster itself.
func ofThis() *api.RestoredSnapshot {
	s := monday.DeepCopy()
	s.ClusterID = "c0"
	return s
}

// TestPlanLost: what is lost at most, in words that claim nothing that is not known.
func TestPlanLost(t *testing.T) {
	t.Parallel()
	db1 := &api.RestoredSnapshot{Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0"}
	for name, tc := range map[string]struct {
		reason string
		found  *api.RestoredSnapshot
		seen   []func(*observed)
		want   string
	}{
		"Serving": {
			reason: "no write is acknowledged that the newest member does not have", found: ofThis(), seen: []func(*observed){atRevisions(4720, 4726, 4725)},
			want: "writes after revision 4711 (2026-11-23T07:50:00Z): db-1 is at revision 4726",
		},
		"NoneLater": {
			reason: "the snapshot was just taken", found: ofThis(), seen: []func(*observed){atRevisions(4711, 4711, 4710)},
			want: "writes after revision 4711 (2026-11-23T07:50:00Z): db-0 has none",
		},
		"NoQuorum": {
			reason: "the others may have had more", found: ofThis(), seen: []func(*observed){atRevisions(0, 4720), withoutQuorum},
			want: "writes after revision 4711 (2026-11-23T07:50:00Z): db-1 is at revision 4720; members that do not answer may have later ones",
		},
		"NoQuorumNoneLater": {
			reason: "so they may where the one that answers has not", found: ofThis(), seen: []func(*observed){atRevisions(0, 4000), withoutQuorum},
			want: "writes after revision 4711 (2026-11-23T07:50:00Z): db-1 has none; members that do not answer may have later ones",
		},
		"Silent": {
			reason: "nothing tells", found: ofThis(), seen: []func(*observed){atRevisions(), withoutQuorum},
			want: "writes after revision 4711 (2026-11-23T07:50:00Z); how many is unknown, because no member answers",
		},
		"OtherCluster": {
			reason: "its revisions are those of other data", found: monday.DeepCopy(), seen: []func(*observed){atRevisions(4720, 4720, 4720)},
			want: "all data of etcd cluster c0 that etcd cluster c9 did not have when the snapshot was taken (2026-11-23T07:50:00Z)",
		},
		"UnknownCluster": {
			reason: "a manifest may not say", found: &api.RestoredSnapshot{Name: "old", SHA256: "5a", Revision: 4711}, seen: []func(*observed){atRevisions(4712)},
			want: "writes after revision 4711: db-0 is at revision 4712",
		},
		"Survivor": {
			reason: "nothing tells what the others had", found: db1, seen: []func(*observed){atRevisions(0, 4720), withoutQuorum},
			want: "writes that were acknowledged without db-1: log entries after 4820, or after a later one; how many is unknown",
		},
		"SurvivorSilent": {
			reason: "nor what it has itself", found: db1, seen: []func(*observed){atRevisions(), withoutQuorum},
			want: "writes that were acknowledged without db-1; how many is unknown, because db-1 does not answer",
		},
		"SurvivorBehind": {
			reason: "another one tells that it has more", found: db1, seen: []func(*observed){atRevisions(4726, 4720), withoutQuorum},
			want: "writes that were acknowledged without db-1: log entries after 4820, or after a later one; how many is unknown; db-0 knows that entry 4826 is committed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore, seen.found = "c0", inPhase(api.RestorePending), tc.found
			for _, change := range tc.seen {
				change(&seen)
			}
			p := planned(c, seen, metav1.Unix(1000, 5))
			if diff := cmp.Diff(tc.want, p.Lost); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if member, ok := seen.Instance(api.MemberOf(tc.found.Name)); ok && (p.RaftIndex != int64(member.Endpoint.RaftIndex) || p.RaftTerm != int64(member.Endpoint.RaftTerm)) {
				t.Errorf("%s: term %d, entry %d, and the member has said %+v", tc.reason, p.RaftTerm, p.RaftIndex, member.Endpoint)
			}
		})
	}
}

// TestPlanOfMany: volumes of members that were removed long ago are kept for as long as a person
// likes (whenScaled Retain), and are set aside as well. The schema bounds the plan: a status that
// is refused would begin no restore.
func TestPlanOfMany(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	c.Status.ClusterID, c.Status.Restore, seen.found = "c0", inPhase(api.RestorePending), ofThis()
	for n := range 70 {
		name := c.MemberName(3 + n)
		seen.Instances = append(seen.Instances, membership.Instance{Name: name, Ordinal: 3 + n, Volume: membership.Volume{UID: "claim-of-" + name, Retired: true}})
	}
	p := planned(c, seen, metav1.Unix(1000, 0))
	if len(p.SetAside) != 64 || p.SetAside[62] != "db-62" || p.SetAside[63] != "and 10 more" {
		t.Errorf("%d are set aside: %v", len(p.SetAside), p.SetAside)
	}
}

// TestPlanIsDone: what a restore in place stops, sets aside and makes is what its plan has told,
// name by name.
func TestPlanIsDone(t *testing.T) {
	t.Parallel()
	lose := func(names ...string) func(*world) {
		return func(w *world) {
			for _, name := range names {
				delete(w.claims, name)
				delete(w.pods, name)
				delete(w.asked.endpoints, name)
			}
			w.asked.members = nil
		}
	}
	later := func(w *world) { w.cluster.Status.NextOrdinal = 9 }
	for name, tc := range map[string]struct {
		reason string
		given  []func(*world)
		change func(*api.ClusterRestore)
		found  *api.RestoredSnapshot
		aside  []string
		news   []string
	}{
		"Serving":  {reason: "all volumes are there", found: ofThis(), aside: []string{"db-0", "db-1", "db-2"}, news: []string{"db-3", "db-4", "db-5"}},
		"Numbered": {reason: "members came and went before", given: []func(*world){later}, found: ofThis(), aside: []string{"db-0", "db-1", "db-2"}, news: []string{"db-9", "db-10", "db-11"}},
		"Lost":     {reason: "two are gone", given: []func(*world){lose("db-0", "db-2")}, found: ofThis(), aside: []string{"db-1"}, news: []string{"db-3", "db-4", "db-5"}},
		"AllLost":  {reason: "there is nothing to set aside", given: []func(*world){lose("db-0", "db-1", "db-2")}, found: ofThis(), news: []string{"db-3", "db-4", "db-5"}},
		"Going": {
			reason: "what is being deleted goes with its Pod", given: []func(*world){func(w *world) { w.claims["db-0"].DeletionTimestamp = new(metav1.Now()) }},
			found: ofThis(), aside: []string{"db-1", "db-2"}, news: []string{"db-3", "db-4", "db-5"},
		},
		"Prepared": {
			reason: "the volume of a member to come is one of before then", given: []func(*world){func(w *world) { w.claims["db-3"] = newClaim("db-3") }},
			found: ofThis(), aside: []string{"db-0", "db-1", "db-2", "db-3"}, news: []string{"db-4", "db-5", "db-6"},
		},
		"Again": {
			reason: "what an earlier restore has set aside stays so", given: []func(*world){func(w *world) { w.restoredWithout(api.RetentionRetain) }},
			found: ofThis(), aside: []string{"db-1", "db-2"}, news: []string{"db-3", "db-4"},
		},
		"Survivor": {
			reason: "one begins alone, and the next names are for those that join", given: []func(*world){lose("db-0", "db-2")}, change: fromMember,
			found: &api.RestoredSnapshot{Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0"}, aside: []string{"db-1"}, news: []string{"db-3", "db-4", "db-5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			for _, change := range tc.given {
				change(&w)
			}
			c := w.cluster
			c.Status.Restore = inPhase(api.RestorePending, inBucket)
			if tc.change != nil {
				tc.change(c.Status.Restore)
			}
			seen := w.seen()
			seen.found, seen.Search = tc.found, membership.Search{Begun: true, Found: snapshotFacts(tc.found)}
			step := membership.Plan(desired(c), seen.Observed)
			if step.Action != membership.Replace {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			c.Status = replacing(c, seen, step)
			p := c.Status.Restore.Plan
			if diff := cmp.Diff([][]string{tc.aside, tc.news}, [][]string{p.SetAside, p.NewMembers}); diff != "" {
				t.Errorf("%s: the plan: -want +got:\n%s", tc.reason, diff)
			}
			if c.Status.Restored.Name != p.From.Name || c.ClientServiceName() != p.ClosedService || !shutsClientsOut(c) {
				t.Errorf("%s: the plan is %+v, and the status %+v", tc.reason, p, c.Status)
			}
			aside, first := w.carryOut()
			if diff := cmp.Diff(p.SetAside, aside); diff != "" {
				t.Errorf("%s: set aside: -plan +done:\n%s", tc.reason, diff)
			}
			next := w.seen().Fresh[:len(p.NewMembers)-len(first)] // names of those that join
			if diff := cmp.Diff(p.NewMembers, slices.Concat(first, next)); diff != "" {
				t.Errorf("%s: new members: -plan +done:\n%s", tc.reason, diff)
			}
		})
	}
}

// seen is a look at the world.
func (w world) seen() observed {
	seen := observed{pods: maps.Clone(w.pods), claims: maps.Clone(w.claims)}
	l := limits{now: time.Now(), stallBefore: time.Now()}
	seen.former = takeFormer(w.cluster, &seen)
	seen.Observed = facts(w.cluster, seen.pods, seen.claims, w.asked, l)
	seen.Former = seen.former.facts(w.cluster, l)
	return seen
}

// carryOut goes on with a restore in place that has begun, until the volumes of the first new
// members are made: what was set aside, and the names of these.
func (w world) carryOut() (aside, first []string) {
	w.t.Helper()
	w.asked.members = nil
	for range 10 {
		switch step := membership.Plan(desired(w.cluster), w.seen().Observed); step.Action {
		case membership.StopFormer:
			for _, name := range step.Members {
				delete(w.pods, name)
			}
		case membership.SetAside:
			aside = append(aside, step.Members...)
			w.marked(step.Members...)
		case membership.Wait: // what is being deleted has lost its Pod
			w.t.Fatalf("it waits: %s", step)
		case membership.Provision:
			return aside, step.Members
		default:
			w.t.Fatalf("the step is %s", step)
		}
	}
	w.t.Fatal("it does not come to the new members")
	return nil, nil
}

// TestTermOfTheLast: without a quorum nothing that is told changes from look to look.
func TestTermOfTheLast(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		flags  map[string]string
		want   uint64
	}{
		"Default":  {reason: "etcd asks the others before it begins a term", want: 4},
		"PreVote":  {reason: "so it does where that is said", flags: map[string]string{"pre-vote": "true"}, want: 4},
		"Without":  {reason: "it begins another one every second", flags: map[string]string{"pre-vote": "false"}},
		"OtherOne": {reason: "another flag says nothing of it", flags: map[string]string{"max-request-bytes": "3145728"}, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			if tc.flags != nil {
				w.cluster.Spec.Options = &api.Options{Flags: tc.flags}
			}
			e := w.asked.endpoints["db-1"]
			e.RaftTerm = 4
			w.asked.endpoints["db-1"] = e
			if i, _ := w.seen().Instance("db-1"); i.Endpoint.RaftTerm != tc.want {
				t.Errorf("%s: term %d, want %d", tc.reason, i.Endpoint.RaftTerm, tc.want)
			}
		})
	}
}

// TestSetPlan: one that is suspended is told, once, and kept to.
func TestSetPlan(t *testing.T) {
	t.Parallel()
	now := metav1.Unix(2000, 0)
	suspended := func(seen *observed) { seen.InPlace.Suspended = true }
	earlier := func() *api.RestorePlan {
		c, seen := newCluster(), healthy()
		c.Status.Restore, seen.found = inPhase(api.RestorePending), ofThis()
		atRevisions(4720, 4720, 4720)(&seen)
		return planned(c, seen, metav1.Unix(1000, 0))
	}
	with := func(p *api.RestorePlan, change func(*api.RestorePlan)) *api.RestorePlan { change(p); return p }
	newer := ofThis()
	newer.Name, newer.SHA256 = "db-tuesday", "6b"
	for name, tc := range map[string]struct {
		reason string
		plan   *api.RestorePlan
		found  *api.RestoredSnapshot
		seen   []func(*observed)
		want   *api.RestorePlan
		pins   string // the snapshot that is looked for from now on
	}{
		"First":       {reason: "it is told when all is found", found: ofThis(), seen: []func(*observed){suspended, atRevisions(4720, 4720, 4720)}, want: with(earlier(), func(p *api.RestorePlan) { p.PlannedAt = now }), pins: "db-monday"},
		"NotFound":    {reason: "there is nothing to tell yet", seen: []func(*observed){suspended}},
		"Unsuspended": {reason: "it is told as it begins", found: ofThis()},
		"Same":        {reason: "a cluster at work is no reason to write", plan: earlier(), found: ofThis(), seen: []func(*observed){suspended, atRevisions(9999, 9999, 9999)}, want: earlier()},
		"Blocked":     {reason: "what was told is not forgotten", plan: earlier(), seen: []func(*observed){suspended}, want: earlier()},
		"Grown": {
			reason: "another volume is set aside as well", plan: earlier(), found: ofThis(),
			seen: []func(*observed){suspended, atRevisions(4720, 4720, 4720), func(seen *observed) {
				seen.Instances = append(seen.Instances, membership.Instance{Name: "db-3", Ordinal: 3, Volume: membership.Volume{UID: "claim-of-db-3"}})
			}},
			want: with(earlier(), func(p *api.RestorePlan) {
				p.PlannedAt, p.SetAside, p.NewMembers = now, []string{"db-0", "db-1", "db-2", "db-3"}, []string{"db-4", "db-5", "db-6"}
			}),
			pins: "db-monday",
		},
		"Resumed": {
			reason: "until it begins the plan is true", plan: earlier(), found: ofThis(),
			seen: []func(*observed){atRevisions(4720, 4720, 4720), func(seen *observed) { seen.Instances[0].Volume = membership.Volume{} }},
			want: with(earlier(), func(p *api.RestorePlan) { p.PlannedAt, p.SetAside = now, []string{"db-1", "db-2"} }), pins: "db-monday",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", inPhase(api.RestorePending, func(r *api.ClusterRestore) {
				r.Plan, r.Source.Before = tc.plan, &now
			})
			seen.InPlace, seen.found = inPlace(c, limits{}), tc.found
			for _, change := range tc.seen {
				change(&seen)
			}
			s := *c.Status.DeepCopy()
			setRestore(&s, c, seen, now)
			if diff := cmp.Diff(tc.want, s.Restore.Plan); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if source := s.Restore.Source; source.Snapshot != tc.pins || (source.Before == nil) != (tc.pins != "") {
				t.Errorf("%s: %+v is looked for, want %q", tc.reason, source, tc.pins)
			}
		})
	}
}

// TestAsPlanned: what is restored is what the plan has told, or nothing.
func TestAsPlanned(t *testing.T) {
	t.Parallel()
	const (
		otherHash   = "the plan is to restore snapshot db-monday with SHA-256 6b, which is not there any more: delete EtcdRestore back, apply it again, and look at its plan"
		otherMember = "the plan is to restore the data of db-1, which is not there any more: delete EtcdRestore back, apply it again, and look at its plan"
	)
	planOf := func(name, sum string) *api.RestorePlan {
		return &api.RestorePlan{From: api.RestoredSnapshot{Name: name, SHA256: sum, ClusterID: "c0"}}
	}
	none := func(*testing.T, *api.EtcdCluster) []client.Object { return nil }
	job := func(t *testing.T, c *api.EtcdCluster) []client.Object {
		return []client.Object{searching(t, c), searcher(0, manifestSaid)}
	}
	left := func(member string) func(*observed) {
		return func(seen *observed) {
			seen.Reach = membership.ReachSome
			for n := range seen.Instances {
				if seen.Instances[n].Name != member {
					seen.Instances[n].Volume = membership.Volume{}
				}
			}
		}
	}
	type result struct {
		Found, Problem string
		Begun          bool
	}
	for name, tc := range map[string]struct {
		reason    string
		plan      *api.RestorePlan
		suspended bool
		survivor  bool
		objects   func(*testing.T, *api.EtcdCluster) []client.Object
		seen      func(*observed)
		want      result
	}{
		"Suspended":      {reason: "no store is asked again and again", plan: planOf("db-monday", "6b"), suspended: true, objects: none, want: result{Found: "db-monday", Begun: true}},
		"Resumed":        {reason: "then it is looked for once more", plan: planOf("db-monday", "5a"), objects: none},
		"ResumedFound":   {reason: "it is there", plan: planOf("db-monday", "5a"), objects: job, want: result{Found: "db-monday", Begun: true}},
		"ResumedOther":   {reason: "another one has its name", plan: planOf("db-monday", "6b"), objects: job, want: result{Problem: otherHash}},
		"Survivor":       {reason: "it is there", plan: planOf("member/db-1", "claim-of-db-1"), survivor: true, objects: none, seen: left("db-1"), want: result{Found: "member/db-1", Begun: true}},
		"SurvivorHeld":   {reason: "and is looked at while it is suspended", plan: planOf("member/db-1", "claim-of-db-1"), survivor: true, suspended: true, objects: none, seen: left("db-0"), want: result{Problem: otherMember}},
		"SurvivorOther":  {reason: "another volume is left by now", plan: planOf("member/db-1", "claim-of-db-1"), survivor: true, objects: none, seen: left("db-0"), want: result{Problem: otherMember}},
		"SurvivorRemade": {reason: "its volume is another object by now", plan: planOf("member/db-1", "before"), survivor: true, objects: none, seen: left("db-1"), want: result{Problem: otherMember}},
		"NoPlan":         {reason: "nothing was told", survivor: true, objects: none, seen: left("db-0"), want: result{Found: "member/db-0", Begun: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", inPhase(api.RestorePending, inBucket, func(r *api.ClusterRestore) {
				r.Plan = tc.plan
				if tc.survivor {
					r.Survivor = &api.Survivor{}
				}
			})
			seen.InPlace = inPlace(c, limits{})
			seen.InPlace.Suspended = tc.suspended
			if tc.seen != nil {
				tc.seen(&seen)
			}
			s := newStub(t, nil, tc.objects(t, c)...)
			s.AgentImage = agentImage
			if err := s.searched(t.Context(), c, &seen); err != nil {
				t.Fatal(err)
			}
			got := result{Problem: seen.InPlace.Problem, Begun: seen.Search.Begun}
			if seen.found != nil {
				got.Found = seen.found.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if (got.Found == "") != (seen.Search.Found == membership.Snapshot{}) || strings.Contains(seen.Search.Problem, "plan") {
				t.Errorf("%s: the search is %+v", tc.reason, seen.Search)
			}
		})
	}
}
