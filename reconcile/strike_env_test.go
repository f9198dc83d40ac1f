//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// What befalls members.

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func deleteVolume(s *stage, c *api.EtcdCluster, victim string) {
	s.Helper()
	deleteClaim(s, c, victim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
	s.must(client.IgnoreNotFound(s.Delete(s.Context(), pod)))
}

func deleteClaim(s *stage, _ *api.EtcdCluster, victim string) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
	s.must(s.Delete(s.Context(), claim))
}

// handedOver checks that the leadership was moved from the victim before it was removed.
func handedOver(s *stage, victim string) {
	s.Helper()
	events := s.events()
	if !slices.ContainsFunc(events, func(e eventsv1.Event) bool {
		return e.Action == string(membership.MoveLeader) && strings.Contains(e.Note, " from "+victim+" ")
	}) {
		s.Errorf("no event tells that %s has handed over its leadership: %v", victim, events)
	}
}

func (s *stage) events() []eventsv1.Event {
	s.Helper()
	events := &eventsv1.EventList{}
	s.must(s.List(s.Context(), events, client.InNamespace(s.ns)))
	return events.Items
}

func wipe(s *stage, _ *api.EtcdCluster, victim string) {
	s.Helper()
	s.must(s.hostlet.Wipe(s.Context(), s.ns, victim))
}

// damage overwrites the beginning of a file of the member.
func damage(file string) func(*stage, *api.EtcdCluster, string) {
	return func(s *stage, _ *api.EtcdCluster, victim string) {
		s.Helper()
		s.must(s.hostlet.Spoil(s.Context(), s.ns, victim, func(dir string) error {
			found, err := filepath.Glob(filepath.Join(dir, "*", file))
			if err != nil || len(found) != 1 {
				s.Fatalf("%d files %s in %s, error %v", len(found), file, dir, err)
			}
			f, err := os.OpenFile(found[0], os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(slices.Repeat([]byte{0xa5}, 16<<10), 0)
			return errors.Join(err, f.Close())
		}))
	}
}

// pause the member for longer than it may be down.
func pause(s *stage, c *api.EtcdCluster, victim string) {
	s.Helper()
	enough := time.After(10 * time.Second)
	s.must(s.hostlet.Pause(s.ns, victim))
	s.await(c, "seen to be silent", func() bool {
		return slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Name == victim && m.Health == api.HealthUnreachable })
	})
	<-enough
	s.must(s.hostlet.Resume(s.ns, victim))
}

// loseNode is the end of a node, which the node controller notices, and the deletion of its Pods,
// which no kubelet confirms.
func loseNode(s *stage, _ *api.EtcdCluster, victim string) {
	s.Helper()
	s.must(s.hostlet.LoseNode(s.ns, victim))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
	s.must(s.Delete(s.Context(), pod, client.GracePeriodSeconds(1)))
}

func returnNode(s *stage, victim string) {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(pod), pod))
	s.must(s.hostlet.ReturnNode(s.ns, victim))
}

func removeByHand(s *stage, c *api.EtcdCluster, victim string) {
	s.Helper()
	etcd := s.etcd(c)
	s.byHand(func(ctx context.Context) error {
		_, err := etcd.MemberRemove(ctx, memberID(c, victim))
		return err
	}, rpctypes.ErrMemberNotFound)
}

// byHand makes a change of members as a person would, trying again where etcd wants more time, or
// has gone away with the answer. The error in done says that an earlier try was carried out.
func (s *stage) byHand(change func(context.Context) error, done error) {
	s.Helper()
	pace := time.NewTicker(loadTimeout / 10)
	defer pace.Stop()
	late := time.After(patience)
	for {
		ctx, cancel := context.WithTimeout(s.Context(), loadTimeout)
		err := change(ctx)
		cancel()
		if err == nil || errors.Is(err, done) {
			return
		}
		select {
		case <-pace.C:
		case <-late:
			s.Fatalf("waited %s for etcd to take a change of its members by hand: %v", patience, err)
		}
	}
}

// raiseCorrupt is what etcd does itself when the hashes of its members differ.
func (s *stage) raiseCorrupt(c *api.EtcdCluster, id uint64) {
	s.Helper()
	s.alarm(c, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: etcdserverpb.AlarmType_CORRUPT})
}

func (s *stage) alarm(c *api.EtcdCluster, request *etcdserverpb.AlarmRequest) {
	s.Helper()
	etcd := s.etcd(c)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := etcdserverpb.NewMaintenanceClient(etcd.ActiveConnection()).Alarm(ctx, request)
	s.must(err)
}

// What is to be seen afterwards.

func memberID(c *api.EtcdCluster, name string) uint64 {
	id, _ := strconv.ParseUint(identityOf(c).Members[name], 16, 64) // 0 is no member's
	return id
}

func namesOf(id identity) []string {
	var names []string
	for name := range id.Members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// awaitMembers waits until the cluster is Ready with these members.
func (s *stage) awaitMembers(c *api.EtcdCluster, names ...string) {
	s.Helper()
	slices.Sort(names)
	s.await(c, "ready with "+cmp.Diff(nil, names), func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && slices.Equal(namesOf(identityOf(c)), names)
	})
}

// clean fails unless etcd has these members, all of them voters, and no alarm, and there are Pods
// and claims of them and of no other, or only such as are going.
func (s *stage) clean(c *api.EtcdCluster, names ...string) {
	s.Helper()
	for _, pod := range s.pods(c) {
		if !slices.Contains(names, pod.Name) {
			s.gone(&pod)
		}
	}
	for _, claim := range s.claims(c) {
		if !slices.Contains(names, claim.Name) {
			s.gone(&claim)
		}
	}
	var pods, claims, members []string
	for _, pod := range s.pods(c) {
		pods = append(pods, pod.Name)
	}
	for _, claim := range s.claims(c) {
		claims = append(claims, claim.Name)
	}
	etcd := s.etcd(c)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	list, err := etcd.MemberList(ctx)
	s.must(err)
	for _, m := range list.Members {
		if m.IsLearner {
			s.Errorf("%s is still a learner", m.Name)
		}
		members = append(members, m.Name)
	}
	slices.Sort(members)
	slices.Sort(names)
	type left struct{ Members, Pods, Claims []string }
	want := left{names, names, names}
	if c.Spec.Storage.Medium == api.MediumMemory {
		want.Claims = nil
	}
	if diff := cmp.Diff(want, left{members, pods, claims}); diff != "" {
		s.Errorf("at the end: -want +got:\n%s", diff)
	}
	if alarms, err := etcd.AlarmList(ctx); err != nil || len(alarms.Alarms) > 0 {
		s.Errorf("alarms at the end: %v, error %v", alarms, err)
	}
	if c.Status.Operation != nil {
		s.await(c, "without an operation under way", func() bool { return c.Status.Operation == nil })
	}
}
