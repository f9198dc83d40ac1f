package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// etcd is a member that answers as it is told; without a cluster ID it does not answer.
type etcd struct {
	endpoint membership.Endpoint
	members  []membership.Member // nil: it cannot list them
}

// asked is an etcd that nobody asks for changes.
type asked struct {
	membership.Client
	etcd
}

func (a asked) Status(ctx context.Context) (membership.Endpoint, error)  { return a.etcd.Status(ctx) }
func (a asked) Members(ctx context.Context) ([]membership.Member, error) { return a.etcd.Members(ctx) }
func (a asked) Close() error                                             { return nil }

func (e etcd) Status(context.Context) (membership.Endpoint, error) {
	if e.endpoint.ClusterID == 0 {
		return membership.Endpoint{}, errors.New("no answer")
	}
	return e.endpoint, nil
}

func (e etcd) Members(context.Context) ([]membership.Member, error) {
	if e.members == nil {
		return nil, errors.New("no quorum")
	}
	return e.members, nil
}

func (etcd) Close() error { return nil }

func TestAsk(t *testing.T) {
	endpoint := func(cluster, member, leader membership.ID) membership.Endpoint {
		return membership.Endpoint{ClusterID: cluster, MemberID: member, Leader: leader}
	}
	ours := healthy().Members
	theirs := []membership.Member{{ID: 0xd0, Name: "db-0", PeerURLs: []string{"http://db-0.db.elsewhere.svc:2380"}}}
	cases := map[string]struct {
		reason    string
		clusterID string
		at        map[string]etcd // by name of the Pod; none: its container does not run
		want      answers
	}{
		"NoPods": {reason: "nobody is asked", want: answers{endpoints: map[string]membership.Endpoint{}}},
		"Healthy": {
			reason: "the leader lists the members", clusterID: "c0",
			at: map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1)}, "db-1": {endpoint(0xc0, 0xa1, 0xa1), ours}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"LeaderBusy": {
			reason: "where the leader cannot, a follower may", clusterID: "c0",
			at: map[string]etcd{"db-0": {endpoint(0xc0, 0xa0, 0xa1), ours}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1)}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"OneDown": {
			reason: "one that does not answer blinds nobody", clusterID: "c0",
			at:   map[string]etcd{"db-0": {}, "db-1": {endpoint(0xc0, 0xa1, 0xa1), ours}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
		"NoLeader": {
			reason: "one that knows no leader is not asked for the list", clusterID: "c0",
			at:   map[string]etcd{"db-0": {endpoint(0xc0, 0xa0, 0), ours}},
			want: answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xc0, 0xa0, 0)}},
		},
		"AddressOfAnotherCluster": {
			reason: "the list of another cluster is none of ours", clusterID: "c0",
			at:   map[string]etcd{"db-0": {endpoint(0xdd, 0xd0, 0xd0), theirs}},
			want: answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xdd, 0xd0, 0xd0)}},
		},
		"AddressOfAnotherClusterWhileForming": {
			reason: "before our cluster's ID is known, a peer URL tells one db-0 from the other",
			at:     map[string]etcd{"db-0": {endpoint(0xdd, 0xd0, 0xd0), theirs}},
			want:   answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xdd, 0xd0, 0xd0)}},
		},
		"Forming": {
			reason: "the list is believed for the sake of our peer URL",
			at:     map[string]etcd{"db-1": {endpoint(0xc0, 0xa1, 0xa1), ours}},
			want:   answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID = tc.clusterID
			running := func(name string) *corev1.Pod {
				pod := newPod(name)
				pod.Status.PodIP = name // what the dialer below looks members up by
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: render.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				}}
				return pod
			}
			ending := running("db-8")
			ending.DeletionTimestamp = new(metav1.Now())
			pods := map[string]*corev1.Pod{"db-8": ending, "db-9": newPod("db-9")} // neither is asked
			for name := range tc.at {
				pods[name] = running(name)
			}
			r := &Reconciler{Dial: func(host string, port int) (membership.Client, error) {
				e, ok := tc.at[host]
				if !ok || port != api.PortClient {
					t.Errorf("%s:%d was dialled", host, port)
				}
				return asked{nil, e}, nil
			}}
			if diff := cmp.Diff(tc.want, r.ask(t.Context(), c, pods), cmp.AllowUnexported(answers{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
