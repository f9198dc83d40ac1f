//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
	"quorate.dev/reconcile"
)

var many = flag.Int("many", 30, "TestManyAtOnce: how many clusters are upgraded at once")

// atATime is how many clusters the operator changes at a time by default.
const atATime = 10

func queuedMessage(limit int, name string) string {
	return fmt.Sprintf("waiting for its turn behind other clusters, of which at most %d change at a time (--max-changing); then changing %s-0 in place from %s to %s; it is the only member: etcd does not serve until it is back", limit, name, etcd35, etcd36)
}

// slowTurns is what a message says of the clusters that have a turn and do nothing with it.
var slowTurns = regexp.MustCompile(`; of those, [^;]* took no step for more than a minute`)

// TestManyAtOnce: so many clusters are given another version by one loop, and only some change at a
// time, in the order in which they ask. Two of them are given one that cannot be had, and the
// operator is replaced half-way.
func TestManyAtOnce(t *testing.T) {
	s := newStage(t)
	s.workers = 8 // as by default
	w := s.crowd()
	limited := func(r *reconcile.Reconciler) { r.MaxChanging, r.StallAfter = atATime, time.Minute }
	crash := s.operate(limited)
	begun := time.Now()
	var names []string
	for n := range *many {
		c := s.cluster(fmt.Sprintf("c%03d", n), 1)
		c.Spec.Version = etcd35
		s.create(c)
		names = append(names, c.Name)
	}
	w.until("ready", *many, func(c *api.EtcdCluster) bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	clients := map[string]*clientv3.Client{}
	for _, name := range names {
		clients[name] = s.etcd(w.now(name))
		s.put(clients[name], "key", name)
	}
	processes, memory := etcds()
	t.Logf("%d clusters made in %s; %d processes of etcd with %d MiB", *many, time.Since(begun).Round(time.Second), processes, memory>>20)

	begun = time.Now()
	broken := names[2:4]
	for n, name := range names {
		if n == *many*2/3 { // from here on all are behind the clusters that wait now
			w.until("queued", 3, func(c *api.EtcdCluster) bool {
				ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
				return ready != nil && ready.Reason == api.ReasonQueued
			})
		}
		c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
		s.change(c, func() {
			if c.Spec.Version = etcd36; slices.Contains(broken, name) {
				c.Spec.Version = "3.6.99"
			}
		})
	}
	arrived := func(c *api.EtcdCluster) bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == etcd36 || is(c, api.ConditionStalled, metav1.ConditionTrue)
	}
	w.until("changed", *many/3, arrived)
	crash()
	s.operate(limited)
	w.until("changed", *many, arrived)
	took := time.Since(begun)
	for _, name := range names {
		s.want(clients[name], "key", name)
		c := w.now(name)
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		if put := slices.Contains(broken, name); put != (stalled != nil && stalled.Reason == api.ReasonChangeFailed) || put != (c.Status.Version == etcd35) {
			t.Errorf("%s runs %s: %s", name, c.Status.Version, contract.Describe(c))
		}
	}
	told := w.tell()
	processes, memory = etcds()
	t.Logf("changed in %s, at most %d at a time; %d waited; %d processes of etcd with %d MiB", took.Round(time.Second), told.Most, len(told.Queued), processes, memory>>20)
	if told.Most > atATime || told.Most < atATime/2 { // on a busy machine one may be done before another begins
		t.Errorf("%d clusters changed at a time, want %d at most, and not much fewer", told.Most, atATime)
	}
	// A cluster that waited before the spec of another one was changed got its turn first. If it
	// has not begun, it has that turn still, and of the clusters that have a turn any may be the
	// first to begin.
	for name, others := range told.Passed {
		if len(others) >= atATime {
			t.Errorf("%s began before %v, which waited before it asked: at most %d of them can have a turn beside it", name, others, atATime-1)
		}
	}
	if told.Later == 0 {
		t.Error("void: none began that had asked behind others")
	}
	if waited := len(told.Queued); waited < *many-2*atATime {
		t.Errorf("%d clusters said that they waited", waited)
	}
	for name, messages := range told.Queued {
		want := queuedMessage(atATime, name)
		if slices.Contains(broken, name) {
			want = strings.Replace(want, "to "+etcd36, "to 3.6.99", 1)
		}
		for n, said := range messages { // after a minute it names those that keep it waiting
			messages[n] = slowTurns.ReplaceAllString(said, "")
		}
		if messages = slices.Compact(messages); !slices.Equal(messages, []string{want}) {
			t.Errorf("%s said %q while it waited, want %q", name, messages, want)
		}
	}
}

// now is the cluster as it was seen last.
func (w *crowd) now(name string) *api.EtcdCluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[name]
}

// slowPull is a registry that takes its time with one version, and does not have it in the end.
type slowPull struct {
	asked, over chan struct{}
	once        sync.Once
}

const slowVersion = "3.6.98"

func (p *slowPull) dir(ctx context.Context, version string) (string, error) {
	if version != slowVersion {
		return node.Etcd(ctx, version)
	}
	p.once.Do(func() { close(p.asked) })
	select {
	case <-p.over:
	case <-ctx.Done():
	}
	return "", errors.New("manifest unknown")
}

// TestTurn: one cluster at a time. The first one to change is stuck half-way; the second waits for
// as long as the first may come to its end by itself, also where the operator is another one by
// then, and no longer.
func TestTurn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		end    func(s *stage, first, second *api.EtcdCluster, pull *slowPull)
	}{
		"PutBack": {
			reason: "it has what it had, and is not tried again",
			end: func(s *stage, first, _ *api.EtcdCluster, pull *slowPull) {
				close(pull.over)
				s.stalled(first, api.ReasonChangeFailed)
			},
		},
		"Suspended": {
			reason: "it is a person's now",
			end: func(s *stage, first, _ *api.EtcdCluster, _ *slowPull) {
				s.change(first, func() { first.Spec.Suspend = true })
			},
		},
		"Deleted": {
			reason: "nothing is left to wait for",
			end:    func(s *stage, first, _ *api.EtcdCluster, _ *slowPull) { s.must(s.Delete(s.Context(), first)) },
		},
		"Restarted": {
			reason: "what is half-way is seen by the next operator",
			end: func(s *stage, first, second *api.EtcdCluster, pull *slowPull) {
				looks := &looks{name: second.Name, more: make(chan struct{}, 1)}
				s.operate(oneAtATime, looks.between)
				s.looked(looks, second)
				pod := &corev1.Pod{}
				s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: second.MemberName(0)}, pod))
				if !strings.HasSuffix(pod.Spec.Containers[0].Image, etcd35) {
					s.Errorf("the second is changed to %s while the first is half-way", pod.Spec.Containers[0].Image)
				}
				close(pull.over)
				s.stalled(first, api.ReasonChangeFailed)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pull := &slowPull{asked: make(chan struct{}), over: make(chan struct{})}
			s := newStage(t, images(pull.dir))
			t.Cleanup(func() { // before the hostlet is stopped, which waits for it
				select {
				case <-pull.over:
				default:
					close(pull.over)
				}
			})
			w := s.crowd()
			crash := s.operate(oneAtATime)
			first, second := s.cluster("first", 1), s.cluster("second", 1)
			for _, c := range []*api.EtcdCluster{first, second} {
				c.Spec.Version = etcd35
				s.create(c)
			}
			s.put(s.ready(first), "key", "first")
			s.put(s.ready(second), "key", "second")
			s.change(first, func() { first.Spec.Version = slowVersion })
			select {
			case <-pull.asked:
			case <-time.After(patience):
				t.Fatal("the first is not changed")
			}
			s.change(second, func() { second.Spec.Version = etcd36 })
			s.await(second, "queued", func() bool {
				ready := meta.FindStatusCondition(second.Status.Conditions, api.ConditionReady)
				return ready.Reason == api.ReasonQueued && ready.Message == queuedMessage(1, "second")
			})
			if name == "Restarted" {
				crash()
			}
			tc.end(s, first, second, pull)
			s.runs(second, etcd36)
			s.want(s.etcd(second), "key", "second")
			if told := w.tell(); told.Most != 1 {
				t.Errorf("%s: %d clusters changed at a time", tc.reason, told.Most)
			}
		})
	}
}

func oneAtATime(r *reconcile.Reconciler) { r.MaxChanging, r.StallAfter = 1, time.Minute }

// looks counts how often an operator begins to look at a cluster.
type looks struct {
	client.Client
	name string
	more chan struct{}
}

func (l *looks) between(r *reconcile.Reconciler) {
	l.Client = r.Client
	r.Client = l
}

func (l *looks) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*api.EtcdCluster); ok && key.Name == l.name {
		select {
		case l.more <- struct{}{}:
		default: // none counts
		}
	}
	return l.Client.Get(ctx, key, o, opts...)
}

// looked waits until the operator has looked at a cluster once, and has done what it then does: it
// begins to look again.
func (s *stage) looked(l *looks, c *api.EtcdCluster) {
	s.Helper()
	late := time.After(patience)
	for n := range 2 {
		select {
		case <-l.more:
		case <-late:
			s.Fatalf("the operator has looked at %s %d times", c.Name, n)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: c.MemberName(0)}}
		s.change(pod, func() { pod.Annotations = map[string]string{"example.com/look": strconv.Itoa(n)} })
	}
}

// etcds are the processes of etcd that this one has started, and the memory that they have in use
// together.
func etcds() (processes, bytes int) {
	children, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range children {
		raw, err := os.ReadFile(path)
		fields := strings.Fields(string(raw))
		if err != nil || fields[1] != "(etcd)" || fields[3] != strconv.Itoa(os.Getpid()) {
			continue
		}
		const resident = 23 // pages, as proc_pid_stat(5) has it
		pages, _ := strconv.Atoi(fields[resident])
		processes, bytes = processes+1, bytes+pages*os.Getpagesize()
	}
	return processes, bytes
}
