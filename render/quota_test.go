package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// TestQuotaOfVolume: without a quota of its own the database has half of a small volume, and etcd's
// default on any other one, whatever number that is.
func TestQuotaOfVolume(t *testing.T) {
	t.Parallel()
	type want struct {
		Args []string
		Room int64
	}
	cases := map[string]struct {
		reason string
		args   string
		want   want
	}{
		"Small":    {reason: "half of it", args: "1Gi", want: want{Args: []string{"--quota-backend-bytes=536870912"}, Room: 512 << 20}},
		"Below":    {reason: "half of it", args: "4095Mi", want: want{Args: []string{"--quota-backend-bytes=2146959360"}, Room: 4095 << 19}},
		"Twice":    {reason: "half of it is the default", args: "4Gi", want: want{Room: defaultQuota}},
		"Most":     {reason: "the most that is taken", args: "1Pi", want: want{Room: defaultQuota}},
		"Overflow": {reason: "its bytes are 0 where a number has 64 bits", args: "10E", want: want{Room: defaultQuota}},
		"Digits":   {reason: "its bytes are negative there", args: "999999999999999999.999999999E", want: want{Room: defaultQuota}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Storage.Size, c.Spec.Options = resource.MustParse(tc.args), nil
			of := func(c *api.EtcdCluster, m Member) []string {
				pod, err := Pod(c, m)
				if err != nil {
					t.Fatal(err)
				}
				var quota []string
				for _, arg := range pod.Spec.Containers[0].Args {
					if strings.HasPrefix(arg, "--quota") {
						quota = append(quota, arg)
					}
				}
				return quota
			}
			got := want{Args: of(c, firstMember(c)), Room: Room(c)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			// The volume of a member may have any size: its driver tells it.
			m := firstMember(c)
			m.Proved, m.Capacity = true, new(resource.MustParse(tc.args))
			c.Spec.Storage.Size = resource.MustParse("8Gi")
			if diff := cmp.Diff(tc.want.Args, of(c, m)); diff != "" {
				t.Errorf("%s: as its volume has it: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
