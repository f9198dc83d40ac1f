//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
	"quorate.dev/membership"
)

// Tags that no release has, and what the registry of TestRefused has under them.
const (
	lies      = "3.6.15" // what it holds is 3.6.16
	liesOlder = "3.7.2"  // what it holds is 3.5.35
	liesNewer = "3.6.14" // what it holds is 3.7.3
	elsewhere = "3.6.90" // what it holds is for another architecture
	missing   = "3.6.99"
)

// spoiled is a registry in which not all is what its name says.
func spoiled(t *testing.T) registry {
	foreign := t.TempDir()
	header := append([]byte("\x7fELF\x02\x01\x01\x00"), make([]byte, 56)...)
	header[16], header[18] = 2, 0xf3 // an executable for RISC-V
	if err := os.WriteFile(filepath.Join(foreign, "etcd"), header, 0o700); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, version string) (string, error) {
		switch version {
		case lies:
			return node.Etcd(ctx, etcd36)
		case liesOlder:
			return node.Etcd(ctx, etcd35)
		case liesNewer:
			return node.Etcd(ctx, etcd37)
		case elsewhere:
			return foreign, nil
		case missing:
			return "", fmt.Errorf("etcd %s: manifest unknown", version)
		default:
			return node.Etcd(ctx, version)
		}
	}
}

// refusal is a change that cannot be, and how that is told.
type refusal struct {
	reason  string
	change  func(*api.EtcdClusterSpec)
	stalled string // the reason of the condition; empty where the API server refuses it
	message string // db-N is the member that was changed
	touched int    // members
}

const putBackMessage = ". It was rolled back, and all members run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false"

// TestRefused: what cannot be is told, by the API server where the spec alone shows it, and else by
// the condition Stalled. What ran goes on, and at most one member was touched. Set back, the
// cluster is what it was. These are the messages of docs/upgrades.md.
func TestRefused(t *testing.T) {
	t.Parallel()
	version := func(v string) func(*api.EtcdClusterSpec) { return func(s *api.EtcdClusterSpec) { s.Version = v } }
	flagged := func(v, flag, value string) func(*api.EtcdClusterSpec) {
		return func(s *api.EtcdClusterSpec) {
			s.Version, s.Options = v, &api.Options{Flags: map[string]string{flag: value}}
		}
	}
	const unsupported = "spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3"
	cases := map[string][]struct {
		name string
		refusal
	}{
		etcd36: {
			{"UnknownMinor", refusal{reason: "there is no such etcd", change: version("3.9.1"), message: unsupported}},
			{"NoLongerSupported", refusal{reason: "3.4 has come to its end", change: version("3.4.45"), message: unsupported}},
			{"NoImage", refusal{
				reason: "it was never released", change: version(missing), stalled: api.ReasonChangeFailed, touched: 1,
				message: "db-N: with etcd 3.6.99 it cannot pull the image gcr.io/etcd-development/etcd:v3.6.99" + putBackMessage,
			}},
			{"OtherArchitecture", refusal{
				reason: "the kernel does not execute it", change: version(elsewhere), stalled: api.ReasonChangeFailed, touched: 1,
				message: "db-N: with etcd 3.6.90 it exited with code 255: exec /usr/local/bin/etcd: exec format error" + putBackMessage,
			}},
			{"LyingTag", refusal{
				reason: "what runs is what the member says", change: version(lies), stalled: api.ReasonVersionMismatch, touched: 1,
				message: "the image tag of db-N is for etcd 3.6.15, and etcd in it says that it is 3.6.16: set spec.version to what etcd says, or push the right image under this tag, or pin the right one with spec.image.digests",
			}},
			{"LyingTagOfAnOlderOne", refusal{
				reason: "what holds an earlier minor does not start", change: version(liesOlder), stalled: api.ReasonChangeFailed, touched: 1,
				message: "db-N: with etcd 3.7.2 it exited with code 2: flag provided but not defined: -feature-gates" + putBackMessage,
			}},
			{"FlagThatWent", refusal{
				reason: "before anything is started", change: flagged(etcd37, "experimental-compaction-batch-limit", "100"), stalled: api.ReasonInvalidSpec,
				message: "spec.options.flags: etcd 3.7.3 has no flag experimental-compaction-batch-limit, it was removed in 3.7; write compaction-batch-limit",
			}},
			{"FlagThatHasNotCome", refusal{
				reason: "before etcd prepares anything", change: flagged(etcd35, "log-format", "json"), stalled: api.ReasonInvalidSpec,
				message: "spec.options.flags: etcd 3.5.35 has no flag log-format, it was added in 3.6; leave it out",
			}},
			{"DowngradeTooFar", refusal{
				reason: "there is a gate for each way", change: version("3.5.20"), stalled: api.ReasonVersionNotAllowed,
				message: "what runs goes on: etcd 3.5.20 cannot be reached from 3.6: set spec.version to 3.5.32 or later, best 3.5.35",
			}},
		},
		etcd35: {
			{"GateOnTheWay", refusal{
				reason: "3.6.4 is no place to arrive at", change: version("3.6.4"), stalled: api.ReasonVersionNotAllowed,
				message: "what runs goes on: etcd 3.6.4 cannot be reached from 3.5: set spec.version to 3.6.11 or later, best 3.6.16",
			}},
			{"LyingTagOfANewerOne", refusal{
				reason: "3.7 does not go on where 3.5 has ended", change: version(liesNewer), stalled: api.ReasonChangeFailed, touched: 1,
				message: "db-N: with etcd 3.6.14 it exited with code 2" + putBackMessage,
			}},
			{"FlagThatWentTwoMinorsOn", refusal{
				reason: "before the first of the two", change: flagged(etcd37, "experimental-compaction-batch-limit", "100"), stalled: api.ReasonInvalidSpec,
				message: "spec.options.flags: etcd 3.7.3 has no flag experimental-compaction-batch-limit, it was removed in 3.7; write compaction-batch-limit",
			}},
		},
		etcd37: {
			{"TwoMinorsDown", refusal{
				reason: "etcd goes down one minor at a time", change: version(etcd35), stalled: api.ReasonVersionNotAllowed,
				message: "what runs goes on: from 3.7.3 to 3.5.35 is a downgrade over two minors: set spec.version to 3.6.16 first, and to 3.5.35 when that is done",
			}},
			{"GateOnTheWayDown", refusal{
				reason: "there is a gate for each way", change: version("3.6.10"), stalled: api.ReasonVersionNotAllowed,
				message: "what runs goes on: etcd 3.6.10 cannot be reached from 3.7: set spec.version to 3.6.11 or later, best 3.6.16",
			}},
		},
	}
	for from, rows := range cases {
		t.Run(from, func(t *testing.T) {
			s := newStage(t, images(spoiled(t)))
			c, load, _ := healing{version: from}.struck(s)
			who, before := identityOf(c), *c.Spec.DeepCopy()
			for _, row := range rows {
				load.refuses(row.name, row.refusal)
				s.change(c, func() { c.Spec = *before.DeepCopy() })
				s.runs(c, from)
				s.same(c, who)
			}
			load.check()
		})
	}
}

var anyMember = regexp.MustCompile(`\bdb-[0-9]\b`)

func (l *load) refuses(name string, r refusal) {
	l.Helper()
	c := l.cluster
	pods, restarts := l.lives(c)
	if r.stalled == "" {
		changed := c.DeepCopy()
		r.change(&changed.Spec)
		if err := l.Patch(l.Context(), changed, client.MergeFrom(c)); err == nil || !strings.Contains(err.Error(), r.message) {
			l.Errorf("%s: %s: the API server says %v, want %q", name, r.reason, err, r.message)
		}
		return
	}
	served := contract.Available(l, c)
	l.change(c, func() { r.change(&c.Spec) })
	message := l.stalled(c, r.stalled)
	if got := anyMember.ReplaceAllString(message, "db-N"); got != r.message {
		l.Errorf("%s: %s: stalled with the message\n%s\nwant\n%s", name, r.reason, got, r.message)
	}
	l.await(20)
	if served(); !is(c, api.ConditionDegraded, metav1.ConditionFalse) {
		l.Errorf("%s: %s: the cluster does not serve as before: %s", name, r.reason, contract.Describe(c))
	}
	samePods, now := l.lives(c)
	if !maps.Equal(pods, samePods) {
		l.Errorf("%s: %s: the Pods are others", name, r.reason)
	}
	for _, pod := range l.pods(c) { // nor was etcd told to prepare for an earlier version
		etcd, err := l.dial(pod.Status.PodIP, api.PortClient)
		l.must(err)
		status, err := etcd.Status(l.Context())
		l.must(errors.Join(err, etcd.Close()))
		if status.Downgrade != (membership.Version{}) {
			l.Errorf("%s: %s: %s is told of a downgrade to %s", name, r.reason, pod.Name, status.Downgrade)
		}
	}
	touched := slices.DeleteFunc(slices.Collect(maps.Keys(now)), func(member string) bool { return now[member] == restarts[member] })
	if len(touched) != r.touched {
		l.Errorf("%s: %s: %v were started again, want %d", name, r.reason, touched, r.touched)
	}
}
