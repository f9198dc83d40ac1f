//go:build env

package reconcile_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/e2e/history"
)

// TestLedger: a run that was interrupted, even while it wrote, goes on with the plans that have not
// ended well.
func TestLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	plans := []trial{{name: "grow/a/After"}, {name: "grow/b/After"}, {name: "heal/a/Before"}}
	first := open(t, path)
	grown := ending{met: true, unread: 2, writes: history.Result{Attempted: 9, Acknowledged: 8, Longest: time.Second}}
	if err := first.keep(ledgerLine{Plan: plans[0].name, Met: grown.met, Unread: grown.unread, Writes: grown.writes, Took: time.Minute}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"Plan":"grow/b/Af`); err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	if err := second.keep(ledgerLine{Plan: plans[2].name, Took: time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := second.keep(ledgerLine{Plan: plans[1].name, Failed: true}); err != nil {
		t.Fatal(err)
	}
	figures := &tally{kinds: map[string]*kindTally{}, injured: map[mode]int{}}
	third := open(t, path)
	left := third.remaining(plans, figures.add)
	if !slices.Equal(third.failed, []string{plans[1].name}) {
		t.Errorf("failed are %v, want %s alone", third.failed, plans[1].name)
	}
	if len(left) != 1 || left[0].name != plans[1].name {
		t.Errorf("left are %v, want %s alone", left, plans[1].name)
	}
	if figures.writes != grown.writes || figures.unread != 2 || !slices.Equal(figures.unmet, []string{plans[2].name}) {
		t.Errorf("the plans that ended count as %+v, %d not read, not met %v", figures.writes, figures.unread, figures.unmet)
	}
}

func open(t *testing.T, path string) *ledger {
	t.Helper()
	l, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.file.Close() }) // each line was written by itself
	return l
}

// TestRequiredPlans: every call to etcd of these lives is there in every mode of a crash, of every
// kind of call that they do not make one in each mode, and of every other kind one effect.
func TestRequiredPlans(t *testing.T) {
	t.Parallel()
	effects := map[string][]string{
		"grow":    {"apply.Pod.db-1#1", "AddLearner#1", "AddLearner#2", "status.EtcdCluster.db#1", "status.EtcdCluster.db#2"},
		"grow35":  {"AddLearner#1", "Promote#1", "Promote#2", "apply.Pod.db-1#1"},
		"inplace": {"agent.find.db-find#1", "agent.restore.db-3#1", "agent.restore.db-4#1", "agent.restore.db-4#2"},
	}
	want := map[string]int{"AddLearner": 6, "Promote": 3, "apply.Pod": 1, "status.EtcdCluster": 1, "agent.find": 1, "agent.restore": 1}
	for seed := range uint64(9) {
		got := map[string]int{}
		plans, spares := requiredPlans(effects, []string{"grow"}, rand.New(rand.NewPCG(seed, 0)))
		for _, p := range plans {
			got[kindOfEffect(p.effect)]++
			if spare, ok := spares[p]; ok && (spare == p || spare.kind() != p.kind()) {
				t.Errorf("seed %d: the spare of %s is %s", seed, p, spare)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d: -want +got:\n%s", seed, diff)
		}
	}
}

// TestPairs: no plan is lost, two are together only of one life and one mode and far enough apart,
// and their name says what they are.
func TestPairs(t *testing.T) {
	t.Parallel()
	story := []string{"a#1", "AddLearner#1", "b#1", "c#1", "d#1", "Promote#1", "e#1", "Promote#2", "f#1", "g#1", "h#1", "Remove#1"}
	effects := map[string][]string{"grow": story, "heal": {"AddLearner#1", "Promote#1"}}
	of := func(life string, m mode, effects ...string) together {
		var ps together
		for _, effect := range effects {
			ps = append(ps, plan{life, effect, m})
		}
		return ps
	}
	cases := map[string]struct {
		reason string
		plans  []plan
		want   []together
	}{
		"FarApart": {
			reason: "the first half of the story with the second one, in its order",
			plans:  of("grow", after, "Remove#1", "AddLearner#1", "Promote#2", "Promote#1"),
			want:   []together{of("grow", after, "AddLearner#1", "Promote#2"), of("grow", after, "Promote#1", "Remove#1")},
		},
		"OneIsLeft": {
			reason: "it has a run of its own",
			plans:  of("grow", before, "AddLearner#1", "Promote#1", "Remove#1"),
			want:   []together{of("grow", before, "AddLearner#1", "Remove#1"), of("grow", before, "Promote#1")},
		},
		"Near": {
			reason: "the operator may not be over the first one",
			plans:  of("heal", after, "AddLearner#1", "Promote#1"),
			want:   []together{of("heal", after, "AddLearner#1"), of("heal", after, "Promote#1")},
		},
		"Modes": {
			reason: "a death would heal an operator that does not know",
			plans:  append(of("grow", replyLost, "AddLearner#1"), of("grow", after, "Remove#1")...),
			want:   []together{of("grow", replyLost, "AddLearner#1"), of("grow", after, "Remove#1")},
		},
		"Lives": {
			reason: "each has a run of its own",
			plans:  append(of("grow", after, "AddLearner#1"), of("heal", after, "Promote#1")...),
			want:   []together{of("grow", after, "AddLearner#1"), of("heal", after, "Promote#1")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pairs(effects, tc.plans)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, ps := range got {
				read, err := parseTogether(ps.String())
				if diff := cmp.Diff(ps, read, cmp.AllowUnexported(plan{})); diff != "" || err != nil {
					t.Errorf("%s is read otherwise, error %v: -want +got:\n%s", ps, err, diff)
				}
			}
		})
	}
}

// TestMembersIn: a member that came twice, or came and went, between two disturbances is seen, and
// what may differ between runs is not.
func TestMembersIn(t *testing.T) {
	t.Parallel()
	story := []string{"status.EtcdCluster.db#1", "AddLearner#1", "MoveLeader#1", "Promote#1", "AddLearner#2", "Promote#2"}
	cases := map[string]struct {
		reason string
		made   []string
		want   []string
	}{
		"AsInTheStory": {reason: "the leader is another one", made: []string{"AddLearner#1", "Promote#1", "AddLearner#2"}, want: []string{"AddLearner#1", "Promote#1"}},
		"Twice": {
			reason: "the reply to the first was lost, and it was tried blindly", made: []string{"AddLearner#1", "Remove#1", "Promote#1", "AddLearner#2"},
			want: []string{"AddLearner#1", "Remove#1", "Promote#1"},
		},
		"NotThere": {reason: "nothing was disturbed", made: []string{"AddLearner#1"}, want: []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, membersIn(tc.made, "AddLearner#2")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if same := cmp.Equal(membersIn(story, "AddLearner#2"), membersIn(tc.made, "AddLearner#2")); same != (name == "AsInTheStory") {
				t.Errorf("%s: the same as in the story: %t", tc.reason, same)
			}
		})
	}
}
