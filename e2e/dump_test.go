//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/render"
)

// dump prints what a person needs after a failure. The namespace stays for a closer look.
func (s *stage) dump(ctx context.Context) {
	s.Logf("namespace %s is kept", s.ns)
	clusters := &api.EtcdClusterList{}
	if err := s.List(ctx, clusters, client.InNamespace(s.ns)); err != nil {
		s.Logf("list EtcdClusters: %v", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		s.Logf("EtcdCluster %s: %s", c.Name, contract.Describe(c))
		for _, m := range c.Status.Members {
			s.show(ctx, "etcd's own view from "+m.Name, "exec", m.Name, "--", "etcdctl", "endpoint", "status", "--cluster", "--write-out=table")
			s.show(ctx, "log of "+m.Name, "logs", m.Name, "--tail=15")
			s.show(ctx, "log of "+m.Name+" before its restart", "logs", m.Name, "--tail=15", "--previous")
		}
	}
	events := &eventsv1.EventList{}
	if err := s.List(ctx, events, client.InNamespace(s.ns)); err != nil {
		s.Logf("list events: %v", err)
	}
	slices.SortFunc(events.Items, func(a, b eventsv1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, e := range events.Items {
		s.Logf("event %s %s %s %s: %s", e.CreationTimestamp.Format("15:04:05"), e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note)
	}
	s.show(ctx, "objects", "get", "pods,services,endpointslices,pvc,pdb,resourcequota,etcdrestores", "--output=wide")
	s.show(ctx, "Pods", "describe", "pods")
	if log, err := onNode(ctx, kubectl(render.InstallNamespace, "logs", "deployment/quorate", "--tail=2000")...); err == nil {
		s.Logf("the operator about this namespace:\n%s", lastLinesAbout(s.ns, log))
	}
}

func (s *stage) show(ctx context.Context, what string, args ...string) {
	out, err := onNode(ctx, kubectl(s.ns, args...)...)
	if err == nil && strings.TrimSpace(out) != "" {
		s.Logf("%s:\n%s", what, out)
	}
}

func lastLinesAbout(namespace, log string) string {
	const most = 60
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, namespace) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "")
}
