package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// What is asked of the voters for a comparison of their data, and when what they have said is a
// fact.

// compared adds to the instances what is known of their data, and begins a comparison where one is
// due.
func (r *Reconciler) compared(ctx context.Context, c *api.EtcdCluster, seen *observed) {
	serving := toCompare(seen)
	if len(serving) < 2 || seen.ClusterID == 0 {
		return
	}
	key, about := client.ObjectKeyFromObject(c), subject(c, seen)
	if running := r.comparing.begin(ctx, key, about, urgent(c, seen), func(ctx context.Context) (map[string]membership.Hash, bool) {
		return r.compareData(ctx, c, serving)
	}); running != nil {
		select {
		case <-running:
		case <-time.After(inPass):
			r.comparing.late(key)
		case <-ctx.Done():
		}
	}
	hashes := r.comparing.result(key, about)
	for n := range seen.Instances {
		if i := &seen.Instances[n]; i.Endpoint.Answered() {
			i.Hash = hashes[i.Name]
		}
	}
}

// urgent reports whether a step waits for a comparison, or will: etcd has accused a member, or one
// is to come or to go.
func urgent(c *api.EtcdCluster, seen *observed) bool {
	n := voters(*seen)
	return n != size(c) || n != len(seen.Members) ||
		slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
			accuses := func(a membership.Alarm) bool { return a.Kind == membership.AlarmCorrupt }
			pod := seen.pods[i.Name]
			return i.Volume.Spare || slices.ContainsFunc(i.Endpoint.Alarms, accuses) || pod != nil && inconsistent(pod)
		})
}

// voter is one to be compared.
type voter struct {
	name     string
	pod      *corev1.Pod
	revision int64
	leads    bool
}

// toCompare are the voters that serve, the leader last. Where etcd's list is not known there are
// none.
func toCompare(seen *observed) []voter {
	var serving []voter
	for _, i := range seen.Instances {
		m, pod := seen.Member(i.ID), seen.pods[i.Name]
		if m != nil && !m.Learner && pod != nil && i.Serves() {
			serving = append(serving, voter{i.Name, pod, i.Endpoint.Revision, i.Leads()})
		}
	}
	n := slices.IndexFunc(serving, func(v voter) bool { return v.leads })
	if n >= 0 {
		serving = append(slices.Delete(slices.Clone(serving), n, n+1), serving[n])
	}
	return serving
}

// subject is what a comparison is about, and what ends its being a fact where it changes: which
// members vote and serve, in which container; which learners there are, and whether they have got
// their data; which members etcd accuses; and whether one is too many, since those that stay may be
// needed to tell afterwards.
func subject(c *api.EtcdCluster, seen *observed) string {
	about := []string{fmt.Sprint(voters(*seen) > size(c))}
	for _, i := range seen.Instances {
		m, pod := seen.Member(i.ID), seen.pods[i.Name]
		if m == nil || pod == nil {
			continue
		}
		about = append(about, fmt.Sprint(m.ID, m.Learner, pod.UID, containerID(pod), i.Serves() || m.Learner && i.Publishes()))
		for _, a := range i.Endpoint.Alarms {
			if a.Kind == membership.AlarmCorrupt {
				about = append(about, "alarm "+a.Member.String())
			}
		}
	}
	slices.Sort(about)
	return strings.Join(slices.Compact(about), "\n")
}

func containerID(pod *corev1.Pod) string {
	if s := containerStatus(pod); s != nil {
		return s.ContainerID
	}
	return ""
}

// compareData asks each voter for its hash, at the lowest revision that one of them has, which all
// of them have then. Where one was compacted meanwhile it is tried again; and where the lowest
// revision is compacted, each one tells of its present one, which are the same if nothing is
// written. It returns what can be compared, and whether that is all of them.
func (r *Reconciler) compareData(ctx context.Context, c *api.EtcdCluster, serving []voter) (map[string]membership.Hash, bool) {
	const tries = 4
	present := false
	for try := range tries {
		var revision int64
		if try > 0 {
			r.revisions(ctx, c, serving)
		}
		if !present {
			revision = slices.MinFunc(serving, func(a, b voter) int { return int(a.revision - b.revision) }).revision
		}
		hashes, compacted := map[string]membership.Hash{}, false
		for _, v := range serving {
			h, err := r.hash(ctx, c, v, revision)
			if errors.Is(err, membership.ErrCompacted) {
				compacted = true
				break
			}
			if err != nil {
				log.FromContext(ctx).V(1).Info("Member cannot be compared", "member", v.name, "error", err.Error())
				continue
			}
			hashes[v.name] = h
		}
		if present = compacted && !present; compacted || !sameRevision(hashes) {
			continue
		}
		return hashes, len(hashes) == len(serving)
	}
	return nil, false
}

func (r *Reconciler) hash(ctx context.Context, c *api.EtcdCluster, v voter, revision int64) (membership.Hash, error) {
	etcd, err := r.dial(c, v.pod)
	if err != nil {
		return membership.Hash{}, err
	}
	hash, err := etcd.Hash(ctx, revision)
	return hash, errors.Join(err, etcd.Close())
}

// revisions are asked for again. A member that does not answer keeps what it said before: revisions
// grow.
func (r *Reconciler) revisions(ctx context.Context, c *api.EtcdCluster, serving []voter) {
	for n := range serving {
		etcd, endpoint, err := r.askStatus(ctx, c, serving[n].pod)
		if err != nil {
			continue
		}
		serving[n].revision = endpoint.Revision
		_ = etcd.Close() // it was only read from
	}
}

func sameRevision(hashes map[string]membership.Hash) bool {
	var first membership.Hash
	for _, h := range hashes {
		if first == (membership.Hash{}) {
			first = h
		}
		if h.Revision != first.Revision || h.Compacted != first.Compacted {
			return false
		}
	}
	return true
}

func differ(hashes map[string]membership.Hash) bool {
	var first membership.Hash
	for _, h := range hashes {
		if first == (membership.Hash{}) {
			first = h
		}
		if h != first {
			return true
		}
	}
	return false
}
