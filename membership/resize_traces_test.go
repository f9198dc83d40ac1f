package membership

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

var traces = flag.String("traces", "", "a directory of traces that are to conform to the model")

// TestTracesRecorded: what was seen of real clusters is a path of the model. TestTrace of package
// reconcile records the traces and runs this.
func TestTracesRecorded(t *testing.T) {
	if *traces == "" {
		t.Skip("there are none; TestTrace in ../reconcile records some")
	}
	files, err := filepath.Glob(filepath.Join(*traces, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces in %s: %v", *traces, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var trace []traceEntry
			if err := json.Unmarshal(raw, &trace); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(filepath.Base(file), "-")
			life := tracedLives[name]
			if story := conforms(trace, life.misfortunes); story != nil {
				t.Error(story)
			}
			effects := effectsOf(trace)
			late := slices.DeleteFunc(slices.Clone(trace), func(e traceEntry) bool { return !slices.ContainsFunc(e.Observed.Instances, Instance.Publishes) })
			t.Logf("%d entries, in %d of which a member takes part and does not serve, calls to etcd among them: %s", len(trace), len(late), strings.Join(effects, "; "))
			for _, call := range life.calls {
				if !slices.ContainsFunc(effects, func(e string) bool {
					return strings.HasPrefix(e, string(call)) && strings.HasSuffix(e, string(outcomeDone))
				}) {
					t.Errorf("void: no %s was done", call)
				}
			}
		})
	}
}

// tracedLives are what a cluster goes through, by the name of the trace: what goes wrong, and what
// etcd is certainly asked for.
var tracedLives = map[string]struct {
	misfortunes ringBudget
	calls       []Action
}{
	"resize": {calls: []Action{AddLearner, Promote, Remove}},
	"lead":   {calls: []Action{MoveLeader, Remove}},
	"late":   {calls: []Action{AddLearner, Promote, Remove}},
	"heal":   {calls: []Action{AddLearner, Promote, Remove}, misfortunes: ringBudget{losses: 1, kills: 1}},
}

// effectsOf a trace on etcd, with the answers.
func effectsOf(trace []traceEntry) []string {
	var effects []string
	for _, e := range trace {
		if e.call().action != flightNone {
			effects = append(effects, strings.TrimSpace(e.Effect+" "+string(e.Outcome)+" "+e.Answer))
		}
	}
	return slices.Compact(effects)
}

// modelled is a trace of the model itself: a cluster changes its size when it has come to rest, and
// nothing goes wrong.
func modelled(sizes ...uint8) []traceEntry {
	x := newRingExplorer(ringBound{leads: true}, ringPlanner{phases: Phases})
	w := ringOf(int(sizes[0]))
	var trace []traceEntry
	for _, size := range sizes {
		w.size = size
		for {
			w = x.settled(w)
			if w.leader == 0 {
				w.leader = 1
			}
			next, t, _ := x.turn(w, false)
			d, o := w.glance(0, true, false, true).facts(false)
			e := traceEntry{Desired: d, Observed: o, Effect: strings.TrimSpace(string(t.step.Action) + " " + strings.Join(t.step.Members, " ")), Outcome: outcomeDone}
			if next == w {
				e.Effect = ""
			}
			trace = append(trace, e)
			if w = next; e.Effect == "" {
				break
			}
		}
	}
	return trace
}

func TestTraces(t *testing.T) {
	grown := []uint8{1, 3}
	at := func(trace []traceEntry, effect string) int {
		return slices.IndexFunc(trace, func(e traceEntry) bool { return e.Effect == effect })
	}
	answered := func(effect string, outcome traceOutcome, answer error) func([]traceEntry) []traceEntry {
		return func(trace []traceEntry) []traceEntry {
			n := at(trace, effect)
			refused := trace[n]
			refused.Outcome = outcome
			if answer != nil {
				refused.Answer = answer.Error()
			}
			return slices.Insert(trace, n, refused)
		}
	}
	cases := map[string]struct {
		reason string
		sizes  []uint8
		change func([]traceEntry) []traceEntry
		want   string // what the violation begins with; empty for none
	}{
		"Resized": {
			reason: "the model conforms to itself",
			sizes:  []uint8{1, 3, 5, 3, 1},
		},
		"Silent": {
			reason: "a look that etcd does not answer shows the objects, and says nothing of the members",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				trace[0].Observed.Reach, trace[0].Observed.Members = ReachNone, nil
				for i := range trace[0].Observed.Instances {
					trace[0].Observed.Instances[i].Endpoint = Endpoint{}
				}
				return trace
			},
		},
		"NotConnectedYet": {
			reason: "etcd wants to have been connected to the second member before it takes the third",
			sizes:  grown, change: answered("AddLearner m-2", outcomeRefused, rpctypes.ErrUnhealthy),
		},
		"NotCaughtUpYet": {
			reason: "the leader does not know of everything that the learner has",
			sizes:  grown, change: answered("Promote m-1", outcomeRefused, rpctypes.ErrMemberLearnerNotReady),
		},
		"Electing": {
			reason: "any call may meet an election",
			sizes:  grown, change: answered("AddLearner m-2", outcomeRefused, rpctypes.ErrLeaderChanged),
		},
		"ReplyLost": {
			reason: "the call comes to nothing, and is made again",
			sizes:  grown, change: answered("Promote m-1", outcomeUnanswered, nil),
		},
		"Alone": {
			reason: "a single member is connected to all there are",
			sizes:  grown, change: answered("AddLearner m-1", outcomeRefused, rpctypes.ErrUnhealthy),
			want: "etcd's answer to AddLearner m-1 is none that the model gives: refused etcdserver: unhealthy cluster",
		},
		"AnotherReason": {
			reason: "one that has not caught up is told so, and nothing else",
			sizes:  grown, change: answered("Promote m-1", outcomeRefused, rpctypes.ErrMemberNotFound),
			want: "etcd's answer to Promote m-1 is none that the model gives",
		},
		"AddedTwice": {
			reason: "a learner cannot be added while there is one",
			sizes:  grown, change: answered("AddLearner m-1", outcomeDone, nil),
			want: "no path of the model leads to etcd's list",
		},
		"TwoLearners": {
			reason: "no cluster has two",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				n := at(trace, "Promote m-2")
				for i := range trace[n].Observed.Members {
					trace[n].Observed.Members[i].Learner = trace[n].Observed.Members[i].ID != ringID(0)
				}
				return trace
			},
			want: "S4: two learners",
		},
		"PromotedBeforeItRan": {
			reason: "one that has never run has not caught up",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				n := at(trace, "Join m-1")
				trace[n].Effect = "Promote m-1"
				return trace
			},
			want: "the operator of the model does not call Promote m-1 here: it decides Join m-1",
		},
		"PromotedByNobody": {
			reason: "no learner becomes a voter without a call",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				n := at(trace, "Promote m-1")
				return slices.Delete(trace, n, n+1)
			},
			want: "no path of the model leads to etcd's list",
		},
		"NotPromoted": {
			reason: "what was done is seen",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				n := at(trace, "Promote m-1")
				return slices.Insert(trace, n, trace[n])
			},
			want: "no path of the model leads to etcd's list",
		},
		"RemovedWithItsLeadership": {
			reason: "the leadership goes first",
			sizes:  []uint8{1, 3, 1},
			change: func(trace []traceEntry) []traceEntry {
				for n := range trace {
					if strings.HasPrefix(trace[n].Effect, "Remove") {
						leads := &trace[n].Observed.Instances[slices.IndexFunc(trace[n].Observed.Instances, func(i Instance) bool { return i.Name == "m-2" })]
						for i := range trace[n].Observed.Instances {
							trace[n].Observed.Instances[i].Endpoint.Leader = leads.ID
						}
						return trace
					}
				}
				return nil
			},
			want: "the operator of the model does not call Remove m-2 here: it decides MoveLeader",
		},
		"VolumeOfAnother": {
			reason: "no member runs on a volume that was another member's",
			sizes:  grown,
			change: func(trace []traceEntry) []traceEntry {
				n := at(trace, "Promote m-1")
				trace[n].Observed.Instances[1].Volume.MemberID++
				return trace
			},
			want: "S9: m-1 has the volume of an earlier member",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := modelled(tc.sizes...)
			if tc.change != nil {
				trace = tc.change(trace)
			}
			story := conforms(trace, ringBudget{})
			switch {
			case tc.want == "" && story != nil:
				t.Errorf("%s: %s", tc.reason, story)
			case tc.want != "" && story == nil:
				t.Errorf("%s: it conforms", tc.reason)
			case story != nil && !strings.HasPrefix(story.violation, tc.want):
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, story)
			case story != nil:
				t.Log(story)
			}
		})
	}
}
