package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSubstitutePatch: which member is started with the patch of the spec because it does not come
// up with its own.
func TestSubstitutePatch(t *testing.T) {
	t.Parallel()
	patch := Version{3, 6, 17}
	crashes := func(i *Instance) {
		silent(i)
		i.Pod.Failing, i.Pod.Crashes, i.Pod.Overdue, i.Pod.Problem = true, true, true, "exited with code 2"
		i.Pod.Parts = []string{"version"}
	}
	unpulled := func(i *Instance) {
		stuck(i)
		i.Pod.ImageUnavailable = true
	}
	given := func(i *Instance) { silent(i); i.Volume.Next = patch }
	cases := map[string]struct {
		reason string
		args   []change
		want   Version // of m-0
	}{
		"Unpulled":    {reason: "its image is gone", args: []change{on(0, unpulled)}, want: patch},
		"AllCrash":    {reason: "none is lost that might come up", args: []change{nobodyAnswers, onAll(crashes)}, want: patch},
		"OnlyOne":     {reason: "there is no other", args: []change{only, nobodyAnswers, on(0, crashes)}, want: patch},
		"OthersGiven": {reason: "the operator has ended in the middle of giving it to all", args: []change{nobodyAnswers, onAll(crashes), on(1, given)}, want: patch},
		"OthersGivenInMemory": {reason: "it answers from the patch, and nothing can be recorded without a quorum", args: []change{nobodyAnswers, onAll(crashes), ephemeral, on(1, func(i *Instance) {
			i.Pod = Pod{UID: "p", Version: patch}
		})}, want: patch},
		"AnotherLost":    {reason: "it never comes up", args: []change{nobodyAnswers, onAll(crashes), on(1, gone)}, want: patch},
		"AnotherAnswers": {reason: "what its kubelet says is old", args: []change{noQuorum, onAll(crashes), on(1, func(i *Instance) { i.Endpoint.MemberID = i.ID })}},
		"OthersServe":    {reason: "its data may be damaged", args: []change{on(0, crashes)}},
		"AnotherWaits":   {reason: "it may come up when there is a quorum", args: []change{nobodyAnswers, onAll(crashes), on(1, func(i *Instance) { i.Pod.Crashes = false })}},
		"NotForLong":     {reason: "the next start may help", args: []change{nobodyAnswers, onAll(crashes), on(2, func(i *Instance) { i.Pod.Overdue = false })}},
		"FailsOtherwise": {reason: "its node lacks something", args: []change{nobodyAnswers, onAll(crashes), onAll(func(i *Instance) { i.Pod.Crashes = false })}},
		"OtherOptions":   {reason: "the correction of these may be enough, and comes first", args: []change{nobodyAnswers, onAll(crashes), onAll(func(i *Instance) { i.Pod.Parts = []string{"options", "version"} })}},
		"NoWay":          {reason: "the spec asks for what is not allowed", args: []change{nobodyAnswers, onAll(crashes), func(d *Desired, _ *Observed) { d.Version = etcd35 }, on(1, func(i *Instance) { i.Volume.Version = etcd37 })}},
		"GivenUp":        {reason: "it was tried in vain", args: []change{abandonedChange, nobodyAnswers, onAll(crashes)}},
		"Changing":       {reason: "it is being changed already", args: []change{nobodyAnswers, onAll(crashes), on(0, given)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := upgrading(etcd36, patch)()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(tc.want, SubstitutePatch(d, o, o.Instances[0])); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
