package history

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
)

// story is a history of a cluster that was restored, as its clients and its keys tell it.
type story struct {
	history []operation
	fork    fork
	truth   []event
	heard   []event // by a watch of the former cluster
}

// restored is a story in which nothing is wrong: revision 12 was restored, with a bump of 1000,
// after 14 had been acknowledged.
func restored() story {
	put := func(value string, revision int64, called, ended time.Duration) operation {
		return operation{write: true, key: "k", value: value, revision: revision, made: revision, called: called, ended: ended}
	}
	get := func(value string, revision, made int64, called, ended time.Duration) operation {
		return operation{client: 1, key: "k", value: value, revision: revision, made: made, called: called, ended: ended}
	}
	lost := errors.New("timed out")
	return story{
		history: []operation{
			put("a", 11, 0, 1), put("b", 12, 2, 3), get("b", 12, 12, 4, 5), put("c", 14, 6, 7), get("c", 14, 14, 8, 9),
			{write: true, key: "k", value: "never", called: 12, ended: 20, err: lost}, {client: 1, key: "k", called: 12, ended: 20, err: lost},
			put("d", 1013, 30, 31), get("d", 1013, 1013, 32, 33),
		},
		fork: fork{
			revision: 12, resumed: 1012, called: 10, ended: 29,
			kept: map[string]written{"k": {event{12, "k", "b"}, 2}},
		},
		truth: []event{{1013, "k", "d"}, {1014, "end", ""}},
		heard: []event{{11, "k", "a"}, {12, "k", "b"}, {14, "k", "c"}},
	}
}

func (s story) wrong() []string {
	return slices.Concat(fallen(s.history), s.fork.lost(s.history, s.truth), s.fork.foreign(s.history, s.truth, "end"), s.fork.miscounted(s.history), s.fork.untold(s.history, s.heard))
}

// TestFork: what was acknowledged before a restored revision is there, what was acknowledged after
// it is not, nothing is lost later, and no revision goes down.
func TestFork(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		change  func(*story)
		want    []string
		illegal bool // no single store would have answered so
	}{
		"Restored": {reason: "the one before the fork is there, the one after it is lost, and the cluster goes on", change: func(*story) {}},
		"LostBefore": {
			reason: "what was acknowledged before the fork is not in what was restored",
			change: func(s *story) { s.fork.kept["k"] = written{event{11, "k", "a"}, 1} },
			want: []string{
				"write of k=b of revision 12 is lost: at revision 12 {Revision:11 Key:k Value:a} was restored",
				"read of k=b of revision 12 is lost: at revision 12 {Revision:11 Key:k Value:a} was restored",
				"k was restored as written 1 times, want 2 to 3",
			},
		},
		"LostAll": {
			reason: "nothing was restored",
			change: func(s *story) { s.fork.kept = nil },
			want: []string{
				"write of k=a of revision 11 is lost: at revision 12 {Revision:0 Key: Value:} was restored",
				"write of k=b of revision 12 is lost: at revision 12 {Revision:0 Key: Value:} was restored",
				"read of k=b of revision 12 is lost: at revision 12 {Revision:0 Key: Value:} was restored",
			},
		},
		"SeenBefore": {
			reason: "a write that failed was read before the fork, and is not in what was restored",
			change: func(s *story) {
				s.history[1].err = errors.New("timed out")
				s.fork.kept["k"] = written{event{11, "k", "a"}, 1}
				s.heard = nil
			},
			want: []string{"read of k=b of revision 12 is lost: at revision 12 {Revision:11 Key:k Value:a} was restored"},
		},
		"FailedBefore": {
			reason: "a write that failed, and that no client has seen, may be in what was restored",
			change: func(s *story) {
				s.history[1].err = errors.New("timed out")
				s.history, s.heard = slices.Delete(s.history, 2, 3), nil
			},
		},
		"Survivor": {
			reason: "what was acknowledged after the fork is in what was restored",
			change: func(s *story) { s.fork.kept["k"] = written{event{14, "k", "c"}, 3} },
			want: []string{
				"at revision 12 {Revision:14 Key:k Value:c} was restored, which is later",
				"read of k=c of revision 14 is there, and revision 12 was restored: {Revision:14 Key:k Value:c}",
			},
		},
		"SurvivorAgain": {
			reason: "the same, under a revision of the restored cluster",
			change: func(s *story) {
				s.truth = slices.Insert(s.truth, 1, event{1014, "k", "c"})
				s.truth[2].Revision = 1015
			},
			want: []string{"read of k=c of revision 14 is there, and revision 12 was restored: {Revision:1014 Key:k Value:c}"},
		},
		"ReadAfter": {
			reason:  "the restored cluster shows once what is to be lost",
			change:  func(s *story) { s.history[8].value, s.history[8].made = "c", 14 },
			want:    []string{"read of k=c of revision 14 is not of what was restored: that is {Revision:12 Key:k Value:b}"},
			illegal: true,
		},
		"SeenAfter": {
			reason: "a write that failed was read after the restore, and is lost",
			change: func(s *story) {
				s.history[5].called, s.history[5].ended = 30, 35
				s.history = append(s.history, operation{client: 1, key: "k", value: "never", revision: 1014, made: 1014, called: 40, ended: 41})
				s.truth[1].Revision = 1015
			},
			want: []string{"read of k=never of revision 1014 is lost: there is {Revision:0 Key: Value:}"},
		},
		"Down": {
			reason: "a former member answers when the restored cluster has",
			change: func(s *story) { s.history[4].called, s.history[4].ended = 40, 41 },
			want: []string{
				"revisions go down: write of k=d at revision 1013 was answered before read of k=c at 14 was asked for",
				"revisions go down: read of k=d at revision 1013 was answered before read of k=c at 14 was asked for",
			},
			illegal: true,
		},
		"DownBefore": {
			reason:  "a member answers a read with less than was acknowledged",
			change:  func(s *story) { s.history[2].revision = 11; s.history[2].value, s.history[2].made = "a", 11 },
			want:    []string{"revisions go down: write of k=b at revision 12 was answered before read of k=a at 11 was asked for"},
			illegal: true,
		},
		"LostAfter": {
			reason: "what was acknowledged after the restore is lost",
			change: func(s *story) { s.truth = s.truth[1:] },
			want: []string{
				"write of k=d of revision 1013 is lost: there is {Revision:0 Key: Value:}",
				"read of k=d of revision 1013 is lost: there is {Revision:0 Key: Value:}",
			},
		},
		"Twice": {
			reason: "a write is in what was restored, and is made once more",
			change: func(s *story) {
				s.truth = []event{{1013, "k", "d"}, {1014, "k", "b"}}
			},
			want: []string{"one write was made twice: {Revision:1014 Key:k Value:b} and {Revision:12 Key:k Value:b}"},
		},
		"Foreign": {
			reason: "another cluster was restored",
			change: func(s *story) { s.fork.kept["other"] = written{event{5, "other", "x"}, 1} },
			want: []string{
				"no client has asked for {Revision:5 Key:other Value:x}",
				"other was restored as written 1 times, want 0 to 0",
			},
		},
		"Untold": {
			reason: "a watch passes over what was acknowledged",
			change: func(s *story) { s.heard = []event{{12, "k", "b"}, {14, "k", "c"}} },
			want:   []string{"the watch has not told of write of k=a at revision 11, but of {Revision:0 Key: Value:}"},
		},
		"ToldAgain": {
			reason: "a watch goes back",
			change: func(s *story) { s.heard = append(s.heard, event{12, "k", "b"}) },
			want: []string{
				"the watch has told of {Revision:12 Key:k Value:b} after revision 14",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := restored()
			tc.change(&s)
			if diff := cmp.Diff(tc.want, s.wrong()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			want := map[bool]porcupine.CheckResult{false: porcupine.Ok, true: porcupine.Illegal}[tc.illegal]
			if got := porcupine.CheckOperationsTimeout(register, s.fork.known(s.history, s.truth), time.Minute); got != want {
				t.Errorf("%s: linearizable %s, want %s", tc.reason, got, want)
			}
		})
	}
}
