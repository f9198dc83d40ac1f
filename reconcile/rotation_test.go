package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

// TestNextRotation: each state that a crash, a person or time can leave leads on, and to the end.
func TestNextRotation(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	good := memberTrust{Name: "db-0", Exists: true, Trusts: true}
	old := memberTrust{Name: "db-1", Exists: true}
	gone := memberTrust{Name: "db-2"}
	alike := memberTrust{Name: "db-2", Exists: true, Trusts: true, Problem: "presents a certificate of the former authority"}
	behind := memberTrust{Name: "db-1", Exists: true, Trusts: true, Problem: "presents a certificate of the former authority"}
	look := noon.Add(rotationLook)
	both := func(change func(*rotationFacts)) rotationFacts {
		f := rotationFacts{Step: api.RotationTrustBoth, Asked: "a", Done: "a", SecretsWritten: true, Reported: true, Now: noon, Members: []memberTrust{good, good}}
		change(&f)
		return f
	}
	reissue := func(change func(*rotationFacts)) rotationFacts {
		f := both(change)
		f.Step = api.RotationReissue
		return f
	}
	rest := func(change func(*rotationFacts)) rotationFacts {
		f := both(change)
		f.Step = ""
		return f
	}
	const recreated, missing = "waiting for the Pods of db-1 to be recreated, one after the other", "waiting for the Pods of db-2 to be created"
	cases := map[string]struct {
		reason string
		facts  rotationFacts
		want   rotationState
	}{
		"Rest":    {reason: "what the spec asks for was done", facts: rest(func(*rotationFacts) {})},
		"Nothing": {reason: "the spec asks for nothing, or not any more", facts: rest(func(f *rotationFacts) { f.Asked = "" })},
		"Asked":   {reason: "by a word", facts: rest(func(f *rotationFacts) { f.Asked = "b" }), want: rotationState{Move: moveBegin}},
		"First":   {reason: "a cluster of an earlier release", facts: rest(func(f *rotationFacts) { f.Done = "" }), want: rotationState{Move: moveBegin}},
		"Due":     {reason: "by its age", facts: rest(func(f *rotationFacts) { f.Due = true }), want: rotationState{Move: moveBegin}},
		"NotYet": {
			reason: "a Secret is yet to be written, and members would start with what it has",
			facts:  rest(func(f *rotationFacts) { f.Asked, f.SecretsWritten = "b", false }),
		},
		"UserBehind": {
			reason: "its client would trust no member any more",
			facts:  reissue(func(f *rotationFacts) { f.Users = []string{"app", "bob"} }),
			want:   rotationState{Step: api.RotationReissue, Waits: "waiting for the certificates of these EtcdUsers to be written (their conditions say what is missing): app, bob", Again: look},
		},
		"UserBehindExpired": {
			reason: "all certificates have expired: none is waited for",
			facts:  both(func(f *rotationFacts) { f.Users, f.Expired = []string{"app"}, true }),
			want:   rotationState{Step: api.RotationTrustBoth, Move: moveReissue},
		},
		"UserLate": {
			reason: "its application has the same time to read it",
			facts:  reissue(func(f *rotationFacts) { f.Users, f.Wait, f.Since = []string{"app"}, week, noon.Add(-week) }),
			want:   rotationState{Step: api.RotationReissue, Move: moveForget, Waits: "waiting for the certificates of these EtcdUsers to be written (their conditions say what is missing): app", Again: look},
		},
		"UserLast": {
			reason: "its application trusts the former authority still",
			facts:  rest(func(f *rotationFacts) { f.Users, f.Underway = []string{"app"}, true }),
			want:   rotationState{Step: api.RotationTrustNew, Waits: "waiting for the certificates of these EtcdUsers to be written (their conditions say what is missing): app", Again: look},
		},
		"UserAtRest":     {reason: "its Secret is written beside any rotation", facts: rest(func(f *rotationFacts) { f.Users = []string{"app"} })},
		"AskedSuspended": {reason: "a person works by hand", facts: rest(func(f *rotationFacts) { f.Asked, f.Suspended = "b", true })},
		"AskedMidway":    {reason: "never two at once: the second comes after the first", facts: both(func(f *rotationFacts) { f.Asked = "b" }), want: rotationState{Step: api.RotationTrustBoth, Move: moveReissue}},
		"TakenBack":      {reason: "what has begun comes to its end", facts: both(func(f *rotationFacts) { f.Asked = "" }), want: rotationState{Step: api.RotationTrustBoth, Move: moveReissue}},
		"AskedInLastStep": {
			reason: "a member that trusts the former one would not trust the one after the new one",
			facts:  rest(func(f *rotationFacts) { f.Asked, f.Members = "b", []memberTrust{good, old} }),
			want:   rotationState{Step: api.RotationTrustNew, Waits: recreated, Again: look},
		},

		"BegunAlone": {
			reason: "a crash after the first write: ca.crt is not written anywhere yet",
			facts:  both(func(f *rotationFacts) { f.SecretsWritten, f.Wait = false, week }),
			want:   rotationState{Step: api.RotationTrustBoth, Waits: "waiting for the Secrets with certificates to be written", Again: look},
		},
		"SecretsWritten": {
			reason: "applications have from now on, and not from when it began",
			facts:  both(func(f *rotationFacts) { f.Wait = week }),
			want:   rotationState{Step: api.RotationTrustBoth, Move: moveMark, Again: look},
		},
		"Members": {
			reason: "no certificate of the next one before every member trusts it",
			facts: both(func(f *rotationFacts) {
				f.Wait, f.Since, f.Members = week, noon.Add(-2*week), []memberTrust{good, old, gone}
			}),
			want: rotationState{Step: api.RotationTrustBoth, Waits: recreated + "; " + missing, Again: look},
		},
		"Applications": {
			reason: "the same of applications",
			facts:  both(func(f *rotationFacts) { f.Wait, f.Since = week, noon.Add(-week+time.Hour) }),
			want: rotationState{
				Step: api.RotationTrustBoth, Again: noon.Add(time.Hour),
				Waits: "applications have until 2026-06-01 13:00:00 UTC to read ca.crt again (spec.tls.client.rotationWait is 168h0m0s)",
			},
		},
		"Away": {
			reason: "the operator was away for a year",
			facts:  both(func(f *rotationFacts) { f.Wait, f.Since = week, noon.AddDate(-1, 0, 0) }),
			want:   rotationState{Step: api.RotationTrustBoth, Move: moveReissue},
		},
		"ClockBack": {
			reason: "the clock was a year ahead when it was written down",
			facts:  both(func(f *rotationFacts) { f.Wait, f.Since = week, noon.AddDate(1, 0, 0) }),
			want:   rotationState{Step: api.RotationTrustBoth, Move: moveMark, Again: look},
		},
		"AtOnce": {
			reason: "rotationWait is 0s by now",
			facts:  both(func(f *rotationFacts) { f.Since = noon.Add(-time.Second) }),
			want:   rotationState{Step: api.RotationTrustBoth, Move: moveReissue},
		},
		"Refused": {
			reason: "what the Pod was made for does not count, but what the member does",
			facts:  both(func(f *rotationFacts) { f.Members = []memberTrust{good, behind} }),
			want:   rotationState{Step: api.RotationTrustBoth, Waits: "db-1 presents a certificate of the former authority", Again: look},
		},
		"RefusedAlike": {
			reason: "one cause is told once",
			facts:  both(func(f *rotationFacts) { f.Members = []memberTrust{good, behind, alike} }),
			want:   rotationState{Step: api.RotationTrustBoth, Waits: "each of db-1, db-2 presents a certificate of the former authority", Again: look},
		},
		"BothSuspended": {
			reason: "nothing is written",
			facts:  both(func(f *rotationFacts) { f.Suspended = true }),
			want:   rotationState{Step: api.RotationTrustBoth, Waits: "it goes on when spec.suspend is false"},
		},
		"Asleep": {reason: "with spec.replicas 0 no member has to learn of it", facts: both(func(f *rotationFacts) { f.Members = nil }), want: rotationState{Step: api.RotationTrustBoth, Move: moveReissue}},
		"Expired": {
			reason: "what the former one has issued is good for nothing, and nothing is waited for",
			facts: both(func(f *rotationFacts) {
				f.Expired, f.SecretsWritten, f.Wait, f.Members = true, false, week, []memberTrust{old}
			}),
			want: rotationState{Step: api.RotationTrustBoth, Move: moveReissue},
		},
		"ExpiredAtRest": {
			reason: "no operator ran while it aged",
			facts: rest(func(f *rotationFacts) {
				f.Expired, f.Due, f.SecretsWritten, f.Members = true, true, false, []memberTrust{old, gone}
			}),
			want: rotationState{Move: moveBegin},
		},
		"ExpiredInReissue": {
			reason: "the one that came next has expired as well: what issues nothing is waited for in vain",
			facts:  reissue(func(f *rotationFacts) { f.Expired, f.Due, f.SecretsWritten, f.Wait = true, true, false, week }),
			want:   rotationState{Step: api.RotationReissue, Move: moveBegin},
		},
		"ExpiredSuspended": {reason: "a person works by hand", facts: rest(func(f *rotationFacts) { f.Expired, f.Due, f.Suspended = true, true, true })},
		"FormerExpired": {
			reason: "no member that trusts the former one alone takes a connection: none is spared",
			facts:  reissue(func(f *rotationFacts) { f.FormerExpired, f.Wait, f.Members = true, week, []memberTrust{good, old} }),
			want:   rotationState{Step: api.RotationReissue, Waits: "waiting for the Pods of db-1 to be recreated, at once, since the authorities that they trust have expired", Again: look},
		},
		"OutlivedFinish": {
			reason: "applications connect with another certificate by now, or not at all",
			facts:  reissue(func(f *rotationFacts) { f.FormerExpired, f.Wait = true, week }),
			want:   rotationState{Step: api.RotationReissue, Move: moveFinish},
		},
		"Unreported": {
			reason: "an operator that comes after this one would take a Secret of before for good",
			facts:  reissue(func(f *rotationFacts) { f.Reported = false }),
			want:   rotationState{Step: api.RotationReissue, Waits: "waiting for the status to name the new authority", Again: noon},
		},

		"ReissuedAlone": {
			reason: "a crash after the second write",
			facts:  reissue(func(f *rotationFacts) { f.SecretsWritten = false }),
			want:   rotationState{Step: api.RotationReissue, Waits: "waiting for the Secrets with certificates to be written", Again: look},
		},
		"ReissueMark": {
			reason: "applications have the whole time again",
			facts:  reissue(func(f *rotationFacts) { f.Wait = week }),
			want:   rotationState{Step: api.RotationReissue, Move: moveMark, Again: look},
		},
		"ReissueApplications": {
			reason: "their certificate is of the former one until they read it again",
			facts:  reissue(func(f *rotationFacts) { f.Wait, f.Since = week, noon }),
			want: rotationState{
				Step: api.RotationReissue, Again: noon.Add(week),
				Waits: "applications have until 2026-06-08 12:00:00 UTC to read their certificate again (spec.tls.client.rotationWait is 168h0m0s)",
			},
		},
		"Shown": {
			reason: "a kubelet has yet to write what was issued",
			facts:  reissue(func(f *rotationFacts) { f.Members = []memberTrust{good, behind} }),
			want:   rotationState{Step: api.RotationReissue, Waits: "db-1 presents a certificate of the former authority", Again: look},
		},
		"LostMidway": {
			reason: "a member that is down may come back with what it had",
			facts:  reissue(func(f *rotationFacts) { f.Members = []memberTrust{good, gone} }),
			want:   rotationState{Step: api.RotationReissue, Waits: missing, Again: look},
		},
		"Finish":          {reason: "all is done", facts: reissue(func(*rotationFacts) {}), want: rotationState{Step: api.RotationReissue, Move: moveFinish}},
		"FinishSuspended": {reason: "a person works by hand", facts: reissue(func(f *rotationFacts) { f.Suspended = true }), want: rotationState{Step: api.RotationReissue, Waits: "it goes on when spec.suspend is false"}},
		"LastStep": {
			reason: "members trust the former one until their Pods are recreated",
			facts:  rest(func(f *rotationFacts) { f.Members = []memberTrust{good, old} }),
			want:   rotationState{Step: api.RotationTrustNew, Waits: recreated, Again: look},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nextRotation(tc.facts)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
