package render

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
)

// accepted is every flag that the etcd of that version accepts on its command line: asked one by
// one, as etcd --<flag>=<value> --version.
func accepted(t *testing.T, version string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/flags", version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// TestFlagTable shows that the table and what the schema refuses cover exactly what each etcd
// accepts.
func TestFlagTable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		v, err := parseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		takes := accepted(t, text)
		var want []string
		for _, flag := range takes {
			if !refused(t, flag) {
				want = append(want, flag)
			}
		}
		var got []string
		for _, flag := range everyFlag(t) {
			if s, ok := find(flag); ok && s.in(v) {
				got = append(got, flag)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("settable flags of etcd %s: -accepted and not refused, +table\n%s", text, diff)
		}
	}
}

// refused reports whether the schema refuses a flag.
func refused(t *testing.T, flag string) bool {
	t.Helper()
	c := load(t, "minimal")
	c.Spec.Options = &api.Options{Flags: map[string]string{flag: "1"}}
	return len(crd.Validate(api.EtcdClusterKind.Kind, c)) > 0
}

// TestOwnFlagsAccepted shows that each version accepts every flag that Quorate writes for it, in
// the arguments of a Pod and in the annotations that they refer to.
func TestOwnFlagsAccepted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		c := load(t, "everything")
		c.Spec.Version, c.Spec.Options.Flags = text, nil
		v, err := parseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		takes := accepted(t, text)
		for _, checked := range []bool{true, false} {
			m := firstMember(c)
			m.InitialCorruptCheck = checked
			given, err := podAnnotations(c, m, "", "")
			if err != nil {
				t.Fatal(err)
			}
			expand := strings.NewReplacer(
				"$(CHECK_AT_START)", given[api.AnnotationCheckAtStart], "$(CHECK_COMPACTED)", given[api.AnnotationCheckCompacted])
			for _, arg := range args(c, m, v) {
				flag := expand.Replace(arg)
				name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
				if !strings.HasPrefix(flag, "--") || !slices.Contains(takes, name) {
					t.Errorf("etcd %s does not accept %s (%s)", text, arg, flag)
				}
			}
		}
	}
}

// everyFlag is every name that some etcd accepts or the table has.
func everyFlag(t *testing.T) []string {
	t.Helper()
	flags := slices.Concat(
		accepted(t, "3.5.35"), accepted(t, "3.6.16"), accepted(t, "3.7.3"),
		slices.Collect(maps.Keys(steady)), slices.Collect(maps.Keys(renamed)), slices.Collect(maps.Keys(passing)),
	)
	for flag := range renamed {
		flags = append(flags, experimental+flag)
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

func TestFlagProblems(t *testing.T) {
	t.Parallel()
	const useless = ": etcd can hang, exit or use a whole cpu with that (docs/options.md)"
	cases := map[string]struct {
		reason  string
		version string
		flags   map[string]string
		served  map[string]string // what members have served with
		want    string
	}{
		"Known": {
			reason:  "A flag that the version knows, with a value of its type, is taken",
			version: "3.6.16", flags: map[string]string{"max-request-bytes": "3145728", "pre-vote": "false", "metrics": "extensive"},
		},
		"BothNamesOn36": {
			reason:  "3.6 takes the old and the new name, so that a spec can be prepared for 3.7 and for 3.5",
			version: "3.6.0", flags: map[string]string{"experimental-corrupt-check-time": "1h", "compaction-batch-limit": "500"},
		},
		"Unknown": {
			reason:  "What no etcd knows has no other name",
			version: "3.7.3", flags: map[string]string{"frobnicate": "1"},
			want: "spec.options.flags: etcd 3.7.3 has no flag frobnicate; leave it out",
		},
		"TooEarly": {
			reason:  "The new name on an old etcd",
			version: "v3.5.35", flags: map[string]string{"corrupt-check-time": "1h"},
			want: "spec.options.flags: etcd 3.5.35 has no flag corrupt-check-time, it was added in 3.6; write experimental-corrupt-check-time",
		},
		"TooEarlyWithoutOther": {
			reason:  "A new flag that had no predecessor",
			version: "3.5.35", flags: map[string]string{"log-format": "console"},
			want: "spec.options.flags: etcd 3.5.35 has no flag log-format, it was added in 3.6; leave it out",
		},
		"TooLate": {
			reason:  "The old name on a new etcd",
			version: "3.7.3", flags: map[string]string{"experimental-corrupt-check-time": "1h"},
			want: "spec.options.flags: etcd 3.7.3 has no flag experimental-corrupt-check-time, it was removed in 3.7; write corrupt-check-time",
		},
		"FeatureGate": {
			reason:  "What became a feature gate has no flag any more",
			version: "3.7.3", flags: map[string]string{"experimental-stop-grpc-service-on-defrag": "true"},
			want: "spec.options.flags: etcd 3.7.3 has no flag experimental-stop-grpc-service-on-defrag, it was removed in 3.7; leave it out",
		},
		"NeverInBetween": {
			reason:  "A name that lived on 3.6 alone leads nowhere on 3.5",
			version: "3.5.35", flags: map[string]string{"experimental-warning-unary-request-duration": "1s"},
			want: "spec.options.flags: etcd 3.5.35 has no flag experimental-warning-unary-request-duration, it was added in 3.6; leave it out",
		},
		"Values": {
			reason:  "etcd would exit on these, again and again",
			version: "3.6.16",
			flags: map[string]string{
				"pre-vote": "maybe", "max-request-bytes": "1.5Mi", "max-concurrent-streams": "4294967296",
				"log-level": "loud", "raft-read-timeout": "5", "backend-batch-limit": "x", "log-format": "",
			},
			want: `spec.options.flags: backend-batch-limit must be an integer, not "x"; ` +
				`spec.options.flags: log-format must be one of json, console, not ""; ` +
				`spec.options.flags: log-level must be one of debug, info, warn, error, panic, fatal, not "loud"; ` +
				`spec.options.flags: max-concurrent-streams must be an integer from 0 to 4294967295, not "4294967296"; ` +
				`spec.options.flags: max-request-bytes must be an integer of at least 0, not "1.5Mi"; ` +
				`spec.options.flags: pre-vote must be true or false, not "maybe"; ` +
				`spec.options.flags: raft-read-timeout must be a duration, for example 500ms or 10m, not "5"`,
		},
		"Origins": {
			reason:  "etcd would exit, and its usage hides why",
			version: "3.6.16",
			flags:   map[string]string{"cors": "https://example.com"},
			want:    `spec.options.flags: cors must be * or URLs with a port, separated by commas, for example https://example.com:443, not "https://example.com"`,
		},
		"OriginsWithPorts": {
			reason:  "etcd takes these",
			version: "3.7.3",
			flags:   map[string]string{"cors": "https://example.com:443, http://[::1]:8080"},
		},
		"AllOrigins": {reason: "etcd takes this", version: "3.5.35", flags: map[string]string{"cors": "*"}},
		"Useless": {
			reason:  "etcd would run, and not serve: docs/options.md has what it does with them",
			version: "3.7.3",
			flags: map[string]string{
				"backend-batch-interval": "1ns", "compact-hash-check-time": "0s", "corrupt-check-time": "-1s", "downgrade-check-time": "-1s",
				"max-concurrent-streams": "2", "max-request-bytes": "511", "max-snapshots": "9223372036854775808", "max-txn-ops": "0",
			},
			want: strings.Join([]string{
				`spec.options.flags: backend-batch-interval must be 0s, or a duration of at least 1ms, not "1ns"`,
				`spec.options.flags: compact-hash-check-time must be a duration of at least 1ms, not "0s"`,
				`spec.options.flags: corrupt-check-time must be 0s, or a duration of at least 1ms, not "-1s"`,
				`spec.options.flags: downgrade-check-time must be 0s, or a duration of at least 1ms, not "-1s"`,
				`spec.options.flags: max-concurrent-streams must be 0, for no limit, or an integer from 3 to 4294967295, not "2"`,
				`spec.options.flags: max-request-bytes must be an integer from 512 to 4294967295, not "511"`,
				`spec.options.flags: max-snapshots must be an integer from 0 to 9223372036854775807, not "9223372036854775808"`,
				`spec.options.flags: max-txn-ops must be an integer from 1 to 9223372036854775807, not "0"`,
			}, useless+"; ") + useless,
		},
		"UselessOtherwise": {
			reason:  "the same under its other name; what does not parse is told as that alone",
			version: "3.6.16", flags: map[string]string{"experimental-corrupt-check-time": "1ns", "max-txn-ops": "-1"},
			want: `spec.options.flags: max-txn-ops must be an integer of at least 0, not "-1"; ` +
				`spec.options.flags: experimental-corrupt-check-time must be 0s, or a duration of at least 1ms, not "1ns"` + useless,
		},
		"Compaction": {
			reason:  "one that never ends keeps etcd busy, and the database grows until it is full",
			version: "3.7.3",
			flags:   map[string]string{"compaction-batch-limit": "-1", "compaction-sleep-interval": "2562047h", "snapshot-catchup-entries": "18446744073709551615"},
			want: strings.Join([]string{
				`spec.options.flags: compaction-batch-limit must be an integer from 0 to 100000, not "-1"`,
				`spec.options.flags: compaction-sleep-interval must be a duration of at most 1m0s, not "2562047h"`,
				`spec.options.flags: snapshot-catchup-entries must be an integer from 0 to 1000000, not "18446744073709551615"`,
			}, useless+"; ") + useless,
		},
		"CompactionOtherwise": {
			reason:  "the same under the names of before",
			version: "3.5.35",
			flags:   map[string]string{"experimental-compaction-batch-limit": "100001", "experimental-compaction-sleep-interval": "61s", "experimental-snapshot-catchup-entries": "1000001"},
			want: strings.Join([]string{
				`spec.options.flags: experimental-compaction-batch-limit must be an integer from 0 to 100000, not "100001"`,
				`spec.options.flags: experimental-compaction-sleep-interval must be a duration of at most 1m0s, not "61s"`,
				`spec.options.flags: experimental-snapshot-catchup-entries must be an integer from 0 to 1000000, not "1000001"`,
			}, useless+"; ") + useless,
		},
		"CompactionServed": {
			reason:  "members that have served with it go on",
			version: "3.7.3",
			flags:   map[string]string{"compaction-batch-limit": "-1", "compaction-sleep-interval": "2562047h"},
			served:  map[string]string{"compaction-batch-limit": "-1", "compaction-sleep-interval": "2562047h"},
		},
		"CompactionMost": {
			reason:  "the largest values that are taken",
			version: "3.7.3",
			flags:   map[string]string{"compaction-batch-limit": "100000", "compaction-sleep-interval": "1m", "snapshot-catchup-entries": "1000000"},
		},
		"Served": {
			reason:  "what members have served with stays, and nothing else that is of no use",
			version: "3.6.16", flags: map[string]string{"max-txn-ops": "0", "max-request-bytes": "8"}, served: map[string]string{"max-txn-ops": "0", "max-request-bytes": "9"},
			want: `spec.options.flags: max-request-bytes must be an integer from 512 to 4294967295, not "8"` + useless,
		},
		"Least": {
			reason:  "what is refused ends there, and 0 is what etcd does without the flag",
			version: "3.5.35",
			flags: map[string]string{
				"backend-batch-interval": "1ms", "experimental-corrupt-check-time": "0s", "experimental-downgrade-check-time": "1ms",
				"max-concurrent-streams": "3", "max-request-bytes": "512", "max-snapshots": "0", "max-txn-ops": "1", "experimental-compact-hash-check-time": "1ms",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Version, c.Spec.Options = tc.version, &api.Options{Flags: tc.flags}
			if diff := cmp.Diff(tc.want, text(ValidateFlags(c, tc.served))); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			m := firstMember(c)
			if _, err := Pod(c, m); strings.Contains(text(err), useless) {
				t.Errorf("%s: no Pod can be made of what a member may have served with: %v", tc.reason, err)
			}
		})
	}
}

// TestNameOn: a flag of the spec is called as the version calls it that a member runs for now, and
// is left out where that has no such setting.
func TestNameOn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		flag, version string
		want          string
	}{
		"Steady":         {reason: "one name on all", flag: "max-request-bytes", version: "3.5.35", want: "max-request-bytes"},
		"NewOn5":         {reason: "the spec is ahead", flag: "corrupt-check-time", version: "3.5.35", want: "experimental-corrupt-check-time"},
		"NewOn6":         {reason: "3.6 knows it", flag: "corrupt-check-time", version: "3.6.16", want: "corrupt-check-time"},
		"NewOn7":         {reason: "and so does 3.7", flag: "corrupt-check-time", version: "3.7.3", want: "corrupt-check-time"},
		"OldOn5":         {reason: "3.5 knows it", flag: "experimental-corrupt-check-time", version: "3.5.35", want: "experimental-corrupt-check-time"},
		"OldOn6":         {reason: "and 3.6 still does", flag: "experimental-corrupt-check-time", version: "3.6.16", want: "experimental-corrupt-check-time"},
		"OldOn7":         {reason: "the spec goes back, and not all have yet", flag: "experimental-corrupt-check-time", version: "3.7.3", want: "corrupt-check-time"},
		"Later":          {reason: "no such setting yet", flag: "log-format", version: "3.5.35"},
		"FeatureGate":    {reason: "no such setting any more", flag: "experimental-stop-grpc-service-on-defrag", version: "3.7.3"},
		"NeverInBetween": {reason: "a name that lived on 3.6 alone", flag: "experimental-warning-unary-request-duration", version: "3.7.3", want: "warning-unary-request-duration"},
		"NorBefore":      {reason: "a name that lived on 3.6 alone leads nowhere on 3.5", flag: "experimental-warning-unary-request-duration", version: "3.5.35"},
		"Unknown":        {reason: "an unknown flag is refused elsewhere, and not renamed", flag: "frobnicate", version: "3.7.3", want: "frobnicate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := parseVersion(tc.version)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := nameOn(v, tc.flag)
			if ok != (tc.want != "") || ok && got != tc.want {
				t.Errorf("%s: %q, %t, want %q", tc.reason, got, ok, tc.want)
			}
		})
	}
}

// TestRenamedFlagsAccepted: whichever of its names a flag has in the spec, each version is given
// one that it accepts, and options that differ in nothing but the name are the same.
func TestRenamedFlagsAccepted(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		v, err := parseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		takes := accepted(t, version)
		for flag := range renamed {
			for _, name := range []string{flag, experimental + flag} {
				if on, ok := nameOn(v, name); !ok || !slices.Contains(takes, on) {
					t.Errorf("etcd %s is given %s for %s, and does not accept it", version, on, name)
				}
			}
			before, after := load(t, "minimal"), load(t, "minimal")
			before.Spec.Options = &api.Options{Flags: map[string]string{experimental + flag: "1"}}
			after.Spec.Options = &api.Options{Flags: map[string]string{flag: "1"}}
			if diff := cmp.Diff(revision(before).String(), revision(after).String()); diff != "" {
				t.Errorf("%s: another name makes Pods outdated: %s", flag, diff)
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
