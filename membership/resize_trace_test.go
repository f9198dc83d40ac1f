package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A trace is a real cluster as its operator saw it, and what the operator did. Each entry is a look
// past every cache, the one effect that followed it at once, and what came of that. It conforms
// when there is a path through the model that looks the same all the way: the effect from the world
// before leads to the world after, with nothing between but what Kubernetes, etcd and people do,
// and etcd gave the answer that the model's etcd gives. What cannot be seen, such as the data on a
// disk, is followed in every way that it may be.

// traceEntry is an entry of a trace. Package reconcile records them, as JSON.
type traceEntry struct {
	Desired  Desired
	Observed Observed
	Effect   string // "AddLearner db-3", "apply Pod db-3"; empty at the end
	Outcome  traceOutcome
	Answer   string // why it was refused
}

type traceOutcome string

const (
	outcomeDone       traceOutcome = "done"
	outcomeRefused    traceOutcome = "refused"
	outcomeUnanswered traceOutcome = "unanswered"
)

func (e *traceEntry) String() string {
	text := fmt.Sprintf("%s: %s", e.Effect, e.Outcome)
	switch {
	case e.Effect == "":
		text = "the end"
	case e.Answer != "":
		text += ", " + e.Answer
	}
	return text + "\n       " + seenAs(e.Desired, e.Observed).String()
}

// call is the call to etcd that the effect is.
func (e *traceEntry) call() ringFlight {
	verb, name, _ := strings.Cut(e.Effect, " ")
	i, _ := e.Observed.Instance(name)
	action := map[Action]ringCall{AddLearner: flightAdd, Promote: flightPromote, Remove: flightRemove, MoveLeader: flightMove}[Action(verb)]
	return ringFlight{action, uint8(i.Ordinal)}
}

// ringTrace follows a trace.
type ringTrace struct {
	x      *ringExplorer
	worlds ringWorlds // those that look like the trace so far
}

// ringWorlds are states whose seats are ordinals: they are not canonical.
type ringWorlds map[ringState]bool

// conforms tells how a trace that begins at rest leaves the model; nil where it does not. So much
// may go wrong on the way.
func conforms(trace []traceEntry, budget ringBudget) *ringStory {
	r := ringTrace{x: newRingExplorer(ringBound{leads: true, still: true, claims: true, late: true, calls: 1}, ringPlanner{phases: Phases})}
	first := slices.IndexFunc(trace, func(e traceEntry) bool { return e.Observed.Reach == ReachQuorum }) // one look may come to nothing
	if first < 0 {
		return &ringStory{violation: "etcd was never reached"}
	}
	r.worlds = ringWorlds{{ring: ringOf(len(trace[first].Observed.Members)), budget: budget}: true}
	story := &ringStory{}
	for n := range trace {
		e := &trace[n]
		before := r.worlds
		story.lines = append(story.lines, e.String())
		if story.violation = r.look(e); story.violation == "" {
			before = r.worlds
			story.violation = r.effect(e)
		}
		if story.violation != "" {
			story.lines = append(story.lines, fmt.Sprintf("in the model it was one of %d worlds, such as\n       %s", len(before), before.some()))
			return story
		}
	}
	return nil
}

// look keeps the worlds that look like this, in the order in which an operator looks: meanwhile the
// world goes on.
func (r *ringTrace) look(e *traceEntry) (violation string) {
	if bad := breaches(e.Observed); bad != "" {
		return bad
	}
	r.x.bound.sizes = []uint8{uint8(e.Desired.Size)}
	resized := ringWorlds{}
	for s := range r.worlds {
		s.budget.specs = 1
		resized[s] = true
	}
	r.worlds = resized
	broken := ""
	for _, part := range looks {
		worlds := ringWorlds{}
		for s := range r.x.around(r.worlds) {
			if !part.like(&s.ring, &e.Desired, &e.Observed) {
				continue
			}
			if bad := s.ring.broken(false); bad != "" {
				broken = bad
				continue
			}
			s.budget.specs = 0
			worlds[s] = true
		}
		if len(worlds) == 0 && broken != "" {
			return broken
		}
		if len(worlds) == 0 {
			return "no path of the model leads to " + part.what + " as seen here"
		}
		r.worlds = worlds
	}
	return ""
}

// effect carries out what the operator did, in every world in which the model's operator would do
// that.
func (r *ringTrace) effect(e *traceEntry) (violation string) {
	call := e.call()
	switch {
	case e.Effect == "":
		return ""
	case call.action == flightNone:
		r.worlds = r.x.around(r.worlds)
		for s := range maps.Clone(r.worlds) { // some writes say nothing that the model knows of
			r.x.fresh(&s, func(edge ringEdge) {
				if edge.violation == "" && edge.to.ring.flights == s.ring.flights {
					r.worlds[edge.to] = true
				}
			})
		}
		return ""
	}
	called := ringWorlds{}
	for s := range r.worlds {
		bad := r.x.declines(&s, call)
		if bad == "" {
			s.ring.seats[call.seat].spend(call, r.x.operator)
			called[s] = true
		}
		violation = max(violation, bad)
	}
	if len(called) == 0 {
		return "the operator of the model does not call " + e.Effect + " here: " + violation
	}
	r.worlds = ringWorlds{}
	for s := range r.x.around(called) {
		s.answered(call, e, func(to ringState) { r.worlds[to] = true })
	}
	if len(r.worlds) == 0 {
		return fmt.Sprintf("etcd's answer to %s is none that the model gives: %s %s", e.Effect, e.Outcome, e.Answer)
	}
	return ""
}

// declines tells why the operator would not make the call; empty where it would. Where the
// leadership goes is a matter of which has most of the log, which the model does not count.
func (x *ringExplorer) declines(s *ringState, call ringFlight) string {
	t := *x.decide(s.ring.glance(0, true, false, true))
	if does := callOf(&t); does.action != call.action || does.seat != call.seat && call.action != flightMove {
		return "it decides " + t.step.String()
	}
	t.target = int(call.seat)
	return s.ring.judge(&t, 0)
}

// elections are answers that etcd may give to any call while it elects a leader.
var elections = []string{rpctypes.ErrNoLeader.Error(), rpctypes.ErrNotLeader.Error(), rpctypes.ErrLeaderChanged.Error()}

// answered yields every world in which etcd has answered as it did.
func (s *ringState) answered(call ringFlight, e *traceEntry, yield func(ringState)) {
	switch e.Outcome {
	case outcomeDone:
		s.ring.land(call, func(w ring, violation string) {
			if to := *s; violation == "" {
				to.ring = w
				yield(to)
			}
		})
	case outcomeUnanswered:
		to := *s
		to.ring.flights[0] = call
		yield(to)
	case outcomeRefused:
		up := s.ring.up()
		for peers := up; ; peers = (peers - 1) & up {
			err := s.ring.refuses(call, peers)
			if err != nil && err.Error() == e.Answer && s.ring.counted(peers) > 0 || slices.Contains(elections, e.Answer) {
				yield(*s)
				return
			}
			if peers == 0 {
				return
			}
		}
	}
}

// around are the worlds, and all that they may become by themselves.
func (x *ringExplorer) around(worlds ringWorlds) ringWorlds {
	reached := maps.Clone(worlds)
	queue := slices.Collect(maps.Keys(worlds))
	for n := 0; n < len(queue); n++ {
		x.bound.surroundings(&queue[n], func(e ringEdge) {
			if e.violation == "" && !reached[e.to] {
				reached[e.to] = true
				queue = append(queue, e.to)
			}
		})
	}
	return reached
}

// some of the worlds, always the same.
func (w ringWorlds) some() string {
	texts := make([]string, 0, len(w))
	for s := range w {
		texts = append(texts, s.ring.String())
	}
	return slices.Min(texts)
}
