package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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
	hangs    bool                // its port is listened on, and not served
	after    time.Duration       // that its answer takes
}

// asked is an etcd that is asked for no changes.
type asked struct {
	membership.Client
	etcd
}

func (a asked) Status(ctx context.Context) (membership.Endpoint, error)  { return a.etcd.Status(ctx) }
func (a asked) Members(ctx context.Context) ([]membership.Member, error) { return a.etcd.Members(ctx) }
func (a asked) Close() error                                             { return nil }

// Hash is the same of all members.
func (a asked) Hash(context.Context, int64) (membership.Hash, error) {
	return membership.Hash{Revision: 7, Compacted: 2, Sum: 0xe0}, nil
}

func (e etcd) Status(ctx context.Context) (membership.Endpoint, error) {
	if e.hangs {
		<-ctx.Done()
		return membership.Endpoint{}, ctx.Err()
	}
	if e.after > 0 && !passes(ctx, e.after) {
		return membership.Endpoint{}, ctx.Err()
	}
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

// gate has the status of a Pod tell that it waits to be let start.
func gate(pod *corev1.Pod) {
	containerStatus(pod).State = waiting("CreateContainerConfigError", "missing value for "+render.EnvInitialClusterState)
}

func TestAsk(t *testing.T) {
	endpoint := func(cluster, member, leader membership.ID) membership.Endpoint {
		return membership.Endpoint{ClusterID: cluster, MemberID: member, Leader: leader}
	}
	publishing := func(id membership.ID) membership.Endpoint {
		return membership.Endpoint{Publishing: id, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}
	}
	ours := healthy().Members
	learning := slices.Concat(ours, []membership.Member{{ID: 0xa3, PeerURLs: []string{"http://db-3.db.ns.svc:2380"}, Learner: true}})
	theirs := []membership.Member{{ID: 0xd0, Name: "db-0", PeerURLs: []string{"http://db-0.db.elsewhere.svc:2380"}}}
	cases := map[string]struct {
		reason    string
		clusterID string
		at        map[string]etcd                // by name of the Pod; none: its container does not run
		metrics   map[string]membership.Endpoint // of those that are not ready
		stale     bool                           // their Pods' status says all the same that they are
		let       string                         // the Pod that was let start, of which its status tells no more than that it waits for it
		want      answers
	}{
		"NoPods": {reason: "there is none to ask", want: answers{endpoints: map[string]membership.Endpoint{}}},
		"Healthy": {
			reason: "the leader lists the members", clusterID: "c0",
			at: map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1)}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"LeaderBusy": {
			reason: "where the leader cannot, a follower may", clusterID: "c0",
			at: map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1), members: ours}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1)}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"OneDown": {
			reason: "one that does not answer does not hide the others", clusterID: "c0",
			at:   map[string]etcd{"db-0": {}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
		"NoLeader": {
			reason: "one that knows no leader is not asked for the list", clusterID: "c0",
			at:   map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0), members: ours}},
			want: answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xc0, 0xa0, 0)}},
		},
		"AddressOfAnotherCluster": {
			reason: "the list of another cluster is none of ours", clusterID: "c0",
			at:   map[string]etcd{"db-0": {endpoint: endpoint(0xdd, 0xd0, 0xd0), members: theirs}},
			want: answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xdd, 0xd0, 0xd0)}},
		},
		"AddressOfAnotherClusterWhileForming": {
			reason: "before our cluster's ID is known, a peer URL tells one db-0 from the other",
			at:     map[string]etcd{"db-0": {endpoint: endpoint(0xdd, 0xd0, 0xd0), members: theirs}},
			want:   answers{endpoints: map[string]membership.Endpoint{"db-0": endpoint(0xdd, 0xd0, 0xd0)}},
		},
		"Forming": {
			reason: "the list is believed for the sake of our peer URL, and no metrics are asked for",
			at:     map[string]etcd{"db-0": {}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}}, metrics: map[string]membership.Endpoint{"db-0": publishing(0xa0)},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
		"Publishing": {
			reason: "a member that does not answer is known by its metrics, as the member that etcd lists", clusterID: "c0",
			at:      map[string]etcd{"db-0": {hangs: true}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": publishing(0xa0)},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": {Publishing: 0xa0, ClusterID: 0xc0, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}, "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"PublishingReady": {
			reason: "its kubelet still calls it ready, as it was before it was started again", clusterID: "c0", stale: true,
			at:      map[string]etcd{"db-0": {hangs: true}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": publishing(0xa0)},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": {Publishing: 0xa0, ClusterID: 0xc0, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}, "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"SlowReady": {
			reason: "its metrics do not say that it does not serve: it has the time of a call", clusterID: "c0", stale: true,
			at:      map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1), after: 2 * beforeMetrics}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": {}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"Fetching": {
			reason: "a learner that has not got its data yet is known by its metrics", clusterID: "c0",
			at:      map[string]etcd{"db-3": {hangs: true}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: learning}},
			metrics: map[string]membership.Endpoint{"db-3": {Fetching: 0xa3, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}},
			want: answers{members: learning, endpoints: map[string]membership.Endpoint{
				"db-3": {Fetching: 0xa3, ClusterID: 0xc0, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}, "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"FetchingVoter": {
			reason: "a voter that follows no leader is as good as silent", clusterID: "c0",
			at:      map[string]etcd{"db-0": {hangs: true}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": {Fetching: 0xa0, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}},
			want:    answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
		"PublishingAsAnother": {
			reason: "another member has got the address", clusterID: "c0",
			at:      map[string]etcd{"db-0": {hangs: true}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": publishing(0xa1)},
			want:    answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
		},
		"PublishingUnlisted": {
			reason: "without a list it is not known whether it is one of the cluster's", clusterID: "c0",
			at:      map[string]etcd{"db-0": {hangs: true}},
			metrics: map[string]membership.Endpoint{"db-0": publishing(0xa0)},
			want:    answers{endpoints: map[string]membership.Endpoint{}},
		},
		"ServingLearner": {
			reason: "one that answers needs no metrics", clusterID: "c0",
			at:      map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1)}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": publishing(0xa0)},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"LetStart": {
			reason: "it may run before its Pod's status says so", clusterID: "c0", let: "db-0",
			at:      map[string]etcd{"db-0": {endpoint: endpoint(0xc0, 0xa0, 0xa1)}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": {}},
			want: answers{members: ours, endpoints: map[string]membership.Endpoint{
				"db-0": endpoint(0xc0, 0xa0, 0xa1), "db-1": endpoint(0xc0, 0xa1, 0xa1),
			}},
		},
		"NoMetrics": {
			reason: "it listens nowhere", clusterID: "c0",
			at:      map[string]etcd{"db-0": {}, "db-1": {endpoint: endpoint(0xc0, 0xa1, 0xa1), members: ours}},
			metrics: map[string]membership.Endpoint{"db-0": {}},
			want:    answers{members: ours, endpoints: map[string]membership.Endpoint{"db-1": endpoint(0xc0, 0xa1, 0xa1)}},
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
			closed := running("db-7")
			gate(closed)
			closed.Annotations = map[string]string{api.AnnotationProvisions: "true"}
			pods := map[string]*corev1.Pod{"db-7": closed, "db-8": ending, "db-9": newPod("db-9")} // none of them is asked
			for name := range tc.at {
				pods[name] = running(name)
				_, newcomer := tc.metrics[name]
				containerStatus(pods[name]).Ready = !newcomer || tc.stale
				if name == tc.let {
					gate(pods[name])
				}
			}
			r := &Reconciler{Dial: func(host string, port int) (membership.Client, error) {
				e, ok := tc.at[host]
				if !ok || port != api.PortClient {
					t.Errorf("%s:%d was dialled", host, port)
				}
				return asked{nil, e}, nil
			}, Scrape: func(_ context.Context, host string, port int) (membership.Endpoint, error) {
				e, ok := tc.metrics[host]
				if !ok || port != api.PortMetrics || tc.clusterID == "" {
					t.Errorf("%s:%d was scraped", host, port)
				}
				if e.Publishing == 0 {
					return e, errors.New("connection refused")
				}
				return e, nil
			}}
			if diff := cmp.Diff(tc.want, r.ask(t.Context(), c, pods), cmp.AllowUnexported(answers{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
