//go:build env

package reconcile_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chaosParts are the parts of TestChaos, each as the beginnings of the names of its plans. Together
// they are all plans. `make test-long` runs one after the other, so that each can be run to its end
// where the whole takes longer than a machine can be had.
var chaosParts = map[string][]string{
	"members":  {"wake/", "grow/", "shrink/", "grow35/", "grow37/", "lead/", "resize/", "late/", "heal/", "move/"},
	"changes":  {"upgrade/", "double/", "down/", "options/", "cpu/", "mend/", "mend1/", "rotate/", "switch/"},
	"data":     {"restore/", "inplace/", "survive/", "backup/", "delete/", "retain/"},
	"blind":    {"blind/"},
	"turned":   {"turn/"},
	"walks":    {"walk/"},
	"recovery": {"recovery/"},
}

// plansOf a part, as -chaos.plan takes them.
func plansOf(t *testing.T, part string) string {
	t.Helper()
	beginnings, ok := chaosParts[part]
	if !ok {
		t.Fatalf("-chaos.part %s: no such part; write one of %s", part, strings.Join(slices.Sorted(maps.Keys(chaosParts)), ", "))
	}
	return strings.Join(beginnings, ",")
}

// TestChaosParts: every life is in one part, and `make test-long` runs every part.
func TestChaosParts(t *testing.T) {
	t.Parallel()
	in := map[string][]string{}
	for _, part := range slices.Sorted(maps.Keys(chaosParts)) {
		for _, beginning := range chaosParts[part] {
			in[beginning] = append(in[beginning], part)
		}
	}
	for life := range lives {
		if parts := in[life+"/"]; len(parts) != 1 {
			t.Errorf("life %s is in parts %v, want in one", life, parts)
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^CHAOS *:= *(.*)$`).FindSubmatch(makefile)
	if listed == nil {
		t.Fatal("../Makefile has no list CHAOS of the parts of TestChaos")
	}
	run := strings.Fields(string(listed[1]))
	slices.Sort(run)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(chaosParts)), run); diff != "" {
		t.Errorf("CHAOS in ../Makefile (-want +got):\n%s", diff)
	}
}
