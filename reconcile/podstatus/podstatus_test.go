package podstatus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestResultOf: what an agent has left counts by the exit of its container, and what is told of one
// that has left nothing.
func TestResultOf(t *testing.T) {
	t.Parallel()
	const (
		stored  = `{"manifest":{"name":"monday","sha256":"5a"}}`
		refused = `{"manifest":{"name":"monday"},"error":{"reason":"AccessDenied","message":"the store refuses s3:PutObject"}}`
	)
	failed := func(reason, message string) Result {
		return Result{Failure: &Failure{Reason: reason, Message: message}}
	}
	cases := map[string]struct {
		reason string
		args   corev1.ContainerStateTerminated
		want   Result
	}{
		"Done":      {reason: "it has done its work", args: corev1.ContainerStateTerminated{Message: stored}, want: Result{Manifest: &Manifest{Name: "monday", SHA256: "5a"}}},
		"DoneMuted": {reason: "it has done its work, and says nothing of it", args: corev1.ContainerStateTerminated{Message: "what else was logged"}},
		"TooLong":   {reason: "the status has no room for it", args: corev1.ContainerStateTerminated{Message: `{"manifest":{"name":"` + strings.Repeat("x", 254) + `"}}`}},
		"Doubtful":  {reason: "the exit code decides", args: corev1.ContainerStateTerminated{Message: `{"error":{"reason":"Failed","message":"no"}}`}},
		"Refused":   {reason: "a snapshot that it names was not stored", args: corev1.ContainerStateTerminated{ExitCode: 1, Message: refused}, want: failed("AccessDenied", "the store refuses s3:PutObject")},
		"NoWord":    {reason: "a condition takes one word", args: corev1.ContainerStateTerminated{ExitCode: 1, Message: `{"error":{"reason":"access denied","message":"no"}}`}, want: failed(api.ReasonAgentFailed, "no")},
		"NoMessage": {reason: "an error without a message tells less than the exit code", args: corev1.ContainerStateTerminated{ExitCode: 3, Message: `{"error":{}}`}, want: failed(api.ReasonAgentFailed, `container save exited with code 3: {"error":{}}`)},
		"Crashed":   {reason: "the end of the log tells", args: corev1.ContainerStateTerminated{ExitCode: 2, Message: "saving\npanic: runtime error\n"}, want: failed(api.ReasonAgentFailed, "container save exited with code 2: panic: runtime error")},
		"Killed":    {reason: "it had no time to say anything", args: corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, want: failed("OOMKilled", "container save was killed for using more memory than it may (OOMKilled)")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ResultOf("save", &tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFirstLine: an event has no more than 1024 bytes.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   string
	}{
		"Lines": {reason: "a condition is one line", args: "\nfirst\nsecond\n", want: "first"},
		"Fits":  {reason: "all of it", args: strings.Repeat("x", 1024), want: strings.Repeat("x", 1024)},
		"Long":  {reason: "what is left out is shown within the bound", args: strings.Repeat("x", 1025), want: strings.Repeat("x", 1021) + "..."},
		"Runes": {reason: "no character is cut in two", args: strings.Repeat("ä", 600), want: strings.Repeat("ä", 510) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, FirstLine(tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
