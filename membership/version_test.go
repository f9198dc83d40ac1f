package membership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	type want struct {
		version Version
		text    string
		refused bool
	}
	cases := map[string]struct {
		reason string
		args   string
		want   want
	}{
		"Plain":      {reason: "As etcd reports it", args: "3.6.16", want: want{version: etcd36, text: "3.6.16"}},
		"WithV":      {reason: "As image tags have it; it is never printed", args: "v3.7.3", want: want{version: etcd37, text: "3.7.3"}},
		"TwoParts":   {reason: "A minor alone names no binary", args: "3.6", want: want{refused: true}},
		"PreRelease": {reason: "No promise holds for a pre-release", args: "3.7.0-rc.1", want: want{refused: true}},
		"Build":      {reason: "Nor for a build of one's own", args: "3.7.0+git", want: want{refused: true}},
		"Word":       {reason: "A moving tag is no version", args: "latest", want: want{refused: true}},
		"Empty":      {reason: "Not known is not a version", args: "", want: want{refused: true}},
		"Largest":    {reason: "More than any release has", args: "9999.9999.9999", want: want{version: Version{9999, 9999, 9999}, text: "9999.9999.9999"}},
		"TooLarge":   {reason: "The status has room for 16 characters", args: "3.6.10000", want: want{refused: true}},
		"TooLong":    {reason: "It is text of another program", args: strings.Repeat("0", 100) + "3.6.16", want: want{refused: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, err := ParseVersion(tc.args)
			got := want{version: version, text: version.String(), refused: err != nil}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVersionCompare(t *testing.T) {
	t.Parallel()
	ascending := []Version{{}, {3, 5, 35}, {3, 6, 2}, {3, 6, 16}, {3, 7, 0}, {4, 0, 0}}
	for n, v := range ascending {
		for m, w := range ascending {
			if got := v.Compare(w); (got < 0) != (n < m) || (got > 0) != (n > m) {
				t.Errorf("compare %q with %q: got %d", v, w, got)
			}
		}
	}
}

func TestID(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		want   ID
		text   string
	}{
		"Hexadecimal": {reason: "As etcdctl prints it", args: "8e9e05c52164694d", want: 0x8e9e05c52164694d, text: "8e9e05c52164694d"},
		"Empty":       {reason: "Nothing is written there", args: "", want: 0, text: ""},
		"Garbage":     {reason: "What is no ID proves nothing", args: "etcd-0", want: 0, text: ""},
		"TooLong":     {reason: "Nor does one that does not fit", args: "18e9e05c52164694d", want: 0, text: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ParseID(tc.args)
			if got != tc.want || got.String() != tc.text {
				t.Errorf("%s: want %x, %q, got %x, %q", tc.reason, uint64(tc.want), tc.text, uint64(got), got)
			}
		})
	}
}
