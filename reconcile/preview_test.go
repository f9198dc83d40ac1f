package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestPreview changes something about a cluster that another release has left, and holds what is
// told of it then. That what is told is what is done shows TestTakenOver, on a real API server.
func TestPreview(t *testing.T) {
	t.Parallel()
	remove := func(p *Previous, kind, name string) {
		var left []client.Object
		for _, o := range p.Objects {
			if o.GetObjectKind().GroupVersionKind().Kind != kind || o.GetName() != name {
				left = append(left, o)
			}
		}
		p.Objects = left
	}
	health := func(p *Previous, member int, health api.MemberHealth) {
		p.Cluster.Status.Members[member].Health = health
	}
	const service = "Service db-client Applied" // it goes by a label that aaf2907 did not have
	const headless = "Service db Applied"       // it had a port for clients
	applied := []string{                        // nor the annotations
		service, "PersistentVolumeClaim db-0 Applied", "Pod db-0 Applied", "PersistentVolumeClaim db-1 Applied", "Pod db-1 Applied", "PersistentVolumeClaim db-2 Applied", "Pod db-2 Applied",
	}
	claims := []string{ // the annotation that aaf2907 did not have
		"PersistentVolumeClaim db-0 Applied", "PersistentVolumeClaim db-1 Applied", "PersistentVolumeClaim db-2 Applied",
	}
	cases := map[string]struct {
		reason  string
		args    func(*Previous)
		step    string // what it begins with: action, reason, message
		rule    string // that decides the step; empty: not asked
		objects []string
	}{
		"AsLeft": {reason: "annotations, and nothing else", args: func(*Previous) {}, objects: applied},
		"Options": {
			reason:  "what the spec asks for is told",
			args:    func(p *Previous) { p.Cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(1000))} },
			step:    "Update Changing: recreating the Pod of db-",
			objects: append([]string{service, "Pod db-0 Recreated [options]", "Pod db-1 Recreated [options]", "Pod db-2 Recreated [options]"}, claims...),
		},
		"Resources": {
			reason: "as the API server sees it a Pod without any cannot be given some",
			args: func(p *Previous) {
				p.Cluster.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
			},
			step:    "Update Changing: recreating the Pod of db-",
			objects: append([]string{service, "Pod db-0 Recreated [resources]", "Pod db-1 Recreated [resources]", "Pod db-2 Recreated [resources]"}, claims...),
		},
		"Metadata": {
			reason:  "what the cluster always has is compared, too",
			args:    func(p *Previous) { p.Cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "a"}} },
			objects: append([]string{"Service db Applied", "PodDisruptionBudget db Applied"}, applied...),
		},
		"More": {
			reason:  "members to come are named as they will be",
			args:    func(p *Previous) { p.Cluster.Spec.Replicas = new(int32(5)) },
			step:    "Provision ScalingUp: ",
			objects: append([]string{service, "Pod db-3 Created", "PersistentVolumeClaim db-3 Created", "Pod db-4 Created", "PersistentVolumeClaim db-4 Created"}, applied[1:]...),
		},
		"Fewer": {
			reason:  "and so are those that go: followers, the newest first",
			args:    func(p *Previous) { p.Cluster.Spec.Replicas = new(int32(1)) },
			step:    "Remove ScalingDown: removing db-2",
			objects: []string{service, "Pod db-1 Removed", "Pod db-2 Removed", "PersistentVolumeClaim db-0 Applied", "Pod db-0 Applied", "PersistentVolumeClaim db-1 Applied", "PersistentVolumeClaim db-2 Applied"},
		},
		"Other": {
			reason: "members move to other volumes, one after the other",
			args: func(p *Previous) {
				p.Cluster.Spec.Storage.StorageClassName, p.Cluster.Spec.Storage.ChangePolicy = new("fast"), api.ChangeReplace
			},
			step: "Provision Moving: ",
			objects: append([]string{
				service, "Pod db-0 Removed", "Pod db-1 Removed", "Pod db-2 Removed", "Pod db-3 Created", "PersistentVolumeClaim db-3 Created",
				"Pod db-4 Created", "PersistentVolumeClaim db-4 Created", "Pod db-5 Created", "PersistentVolumeClaim db-5 Created",
			}, claims...),
		},
		"Larger": {
			reason:  "volumes grow, all at once; the limit of a small database, half of its volume, follows",
			args:    func(p *Previous) { p.Cluster.Spec.Storage.Size = resource.MustParse("20Gi") },
			step:    "Expand Changing: growing the volumes of db-0, db-1, db-2",
			objects: append(append([]string{service, "Pod db-0 Recreated [storage.size]", "Pod db-1 Recreated [storage.size]", "Pod db-2 Recreated [storage.size]"}, claims...), "PersistentVolumeClaim db-0 Grown", "PersistentVolumeClaim db-1 Grown", "PersistentVolumeClaim db-2 Grown"),
		},
		"NoService": {
			reason:  "what is missing is created",
			args:    func(p *Previous) { remove(p, "Service", "db-client") },
			objects: append([]string{"Service db-client Created"}, applied[1:]...),
		},
		"ForeignService": {
			reason: "what stands in the way is told, and nothing else is done to a cluster that cannot have it",
			args: func(p *Previous) {
				remove(p, "Service", "db-client")
				p.Objects = append(p.Objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db-client", Namespace: p.Cluster.Namespace}})
			},
			step: "Stall ForeignObject: Service db-client exists and belongs to another application",
		},
		"Refused": {
			reason: "so is a spec that this version refuses",
			args:   func(p *Previous) { p.Cluster.Spec.Options = &api.Options{Flags: map[string]string{"no-such": "1"}} },
			step:   "Stall InvalidSpec: ",
		},
		"NoWay": {
			reason:  "and a version that cannot be reached",
			args:    func(p *Previous) { p.Cluster.Spec.Version = "3.5.30" },
			step:    "Stall VersionNotAllowed: ",
			objects: applied,
		},
		"GivenUp": {
			reason: "a change that was given up is not tried again by another version",
			args: func(p *Previous) {
				p.Cluster.Spec.Version = "3.6.15"
				p.Cluster.Status.FailedChange = &api.FailedChange{Generation: p.Cluster.Generation, Message: "it does not work"}
			},
			step: "Stall ChangeFailed: ", objects: applied,
		},
		"MemberDown": {
			reason: "a change that waits for a member comes all the same",
			args: func(p *Previous) {
				p.Cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(1000))}
				health(p, 1, api.HealthUnreachable)
			},
			step:    "Wait MemberDown: ",
			objects: append([]string{service, "Pod db-0 Recreated [options]", "Pod db-1 Recreated [options]", "Pod db-2 Recreated [options]"}, claims...),
		},
		"Alarm": {
			reason: "the status tells which",
			args: func(p *Previous) {
				health(p, 0, api.HealthAlarm)
				p.Cluster.Status.DBSize = new(resource.MustParse("512Mi"))
				meta.SetStatusCondition(&p.Cluster.Status.Conditions, metav1.Condition{
					Type: api.ConditionAvailable, Status: metav1.ConditionFalse, Reason: api.ReasonAlarm, Message: "etcd has raised the alarm NOSPACE",
				})
			},
			step: "Stall Alarm: ", objects: applied,
		},
		"QuotaTooSmall": {
			reason: "how large the database is, the status tells as well",
			args: func(p *Previous) {
				p.Cluster.Status.DBSize = new(resource.MustParse("20Mi"))
				p.Cluster.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("16Mi"))}
			},
			step: "Stall QuotaTooSmall: ", objects: applied,
		},
		"SnapshotFirst": {
			reason: "a snapshot comes first, and what comes then is told as well",
			args: func(p *Previous) {
				p.Cluster.Spec.Version = "3.6.15"
				storing(p.Cluster)
			},
			step:    "BackUp BackingUp: taking a snapshot with EtcdBackup ",
			objects: append([]string{service, "Pod db-0 Recreated [version]", "Pod db-1 Recreated [version]", "Pod db-2 Recreated [version]"}, claims...),
		},
		"SnapshotFailed": {
			reason: "and what keeps it up",
			args: func(p *Previous) {
				p.Cluster.Spec.Version = "3.6.15"
				storing(p.Cluster)
				p.Objects = append(p.Objects, beforeChange(p.Cluster, api.ReasonPodPending, "Job x has no Pod yet", true))
			},
			step: "Stall BackupFailed: EtcdBackup ", objects: applied,
		},
		"NoPod": {
			reason:  "a member whose Pod was deleted gets one, as ever",
			args:    func(p *Previous) { remove(p, "Pod", "db-1") },
			step:    "Start Starting: ",
			rule:    "startMembers",
			objects: []string{service, "PersistentVolumeClaim db-0 Applied", "Pod db-0 Applied", "PersistentVolumeClaim db-1 Applied", "PersistentVolumeClaim db-2 Applied", "Pod db-2 Applied"},
		},
		"GivenUpAndDown": {
			reason: "what was tried in vain is not tried again, whatever else there is to do",
			args: func(p *Previous) {
				p.Cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(1000))}
				p.Cluster.Status.FailedChange = &api.FailedChange{Generation: p.Cluster.Generation, Message: "db-0 did not come up"}
				remove(p, "Pod", "db-1")
			},
			step:    "Start Starting: ",
			objects: []string{service, "PersistentVolumeClaim db-0 Applied", "Pod db-0 Applied", "PersistentVolumeClaim db-1 Applied", "PersistentVolumeClaim db-2 Applied", "Pod db-2 Applied"},
		},
		"Suspended": {
			reason: "nothing at all is done to a cluster that is suspended",
			args: func(p *Previous) {
				p.Cluster.Spec.Suspend, p.Cluster.Spec.Options = true, &api.Options{SnapshotCount: new(int64(1000))}
			},
			step: "None Suspended: suspended by spec.suspend; without it: recreating the Pod of db-",
			rule: "updateMember",
		},
		"Hibernated": {
			reason: "of one that sleeps no Pod is made, and its volumes get what they lack",
			args: func(p *Previous) {
				p.Cluster.Spec.Replicas = new(int32(0))
				for _, name := range []string{"db-0", "db-1", "db-2"} {
					remove(p, "Pod", name)
				}
			},
			objects: append([]string{service}, claims...),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ReadPrevious(t, "testdata/previous/aaf2907/formed.yaml")
			tc.args(&p)
			o, err := Preview(t.Context(), p.reader(t), p.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			step := ""
			if o.Step != nil {
				step = string(o.Step.Action) + " " + string(o.Step.Reason) + ": " + o.Step.Message
			}
			if !strings.HasPrefix(step, tc.step) || tc.step == "" && step != "" {
				t.Errorf("%s: the step is %q, want one that begins with %q", tc.reason, step, tc.step)
			}
			if tc.rule != "" && (o.Step == nil || o.Step.Rule != tc.rule) {
				t.Errorf("%s: the step is %+v, want one that rule %s decides", tc.reason, o.Step, tc.rule)
			}
			var objects []string
			for _, change := range o.Objects {
				line := change.Kind + " " + change.Name + " " + string(change.Effect)
				if len(change.Parts) > 0 {
					line += " [" + strings.Join(change.Parts, " ") + "]"
				}
				objects = append(objects, line)
			}
			want := tc.objects
			if len(want) > 0 && want[0] != headless {
				want = append([]string{headless}, want...)
			}
			if diff := cmp.Diff(want, objects); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRememberedStorage: the data rises when every member runs the later minor. While one does not
// answer, the status does not tell of which minor the data is.
func TestRememberedStorage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		last   string // what db-2 says that it runs
		want   membership.Version
	}{
		"All":    {reason: "all run it", last: "3.7.3", want: membership.Version{Major: 3, Minor: 7}},
		"Silent": {reason: "one may run the earlier minor, and is rolled back to it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID, c.Status.Version, c.Status.Leader = "c0", "3.7.3", "db-0"
			for n, version := range []string{"3.7.3", "3.7.3", tc.last} {
				m := api.MemberStatus{Name: c.MemberName(n), ID: membership.ID(n + 1).String(), Version: version, Role: api.RoleFollower, Health: api.HealthHealthy}
				if version == "" {
					m.Health = api.HealthUnreachable
				}
				c.Status.Members = append(c.Status.Members, m)
			}
			if diff := cmp.Diff(tc.want, remembered(c).endpoints["db-1"].Storage); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
