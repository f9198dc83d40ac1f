package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// Outlook is what this version of Quorate would do to a cluster.
type Outlook struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Members   int    `json:"members"`
	// Step is what it would do first, or wait for, or why it does nothing; nil where it has nothing
	// to do.
	Step *Upcoming `json:"step,omitempty"`
	// Objects are those that it would change.
	Objects []ObjectChange `json:"objects,omitempty"`
}

// Upcoming is a step to come, in the words of the status.
type Upcoming struct {
	Action  membership.Action `json:"action"`
	Rule    string            `json:"rule,omitempty"` // that decided; empty where it was none of the planner's
	Reason  membership.Reason `json:"reason"`
	Message string            `json:"message"`
}

// ObjectChange is what would become of one object.
type ObjectChange struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Effect Effect `json:"effect"`
	// Parts of the spec that lead to a change of a Pod.
	Parts []string `json:"parts,omitempty"`
	// Differences from what was applied last, where the object is applied as it is.
	Differences []render.Difference `json:"differences,omitempty"`
}

// Effect is what a change does to an object.
type Effect string

// The effects.
const (
	EffectRecreated Effect = "Recreated"    // a Pod, over its volume
	EffectRestarted Effect = "StartedAgain" // the container of a Pod, where it is
	EffectResized   Effect = "Resized"      // a Pod, while it runs; it is recreated where its node turns out to have less
	EffectApplied   Effect = "Applied"      // labels, annotations or fields; nothing is started again
	EffectCreated   Effect = "Created"
	EffectGrown     Effect = "Grown"   // a volume, where its class can do that; nothing is started again
	EffectRemoved   Effect = "Removed" // a Pod, whose member leaves the cluster, for good or for another one
)

// Preview is what the operator would do to a cluster, by the same judgement. It looks at the
// objects, and takes what etcd would say from the status, which is what another version of the
// operator has found. It is given nothing to write with.
func Preview(ctx context.Context, reader client.Reader, c *api.EtcdCluster) (Outlook, error) {
	c = c.DeepCopy()
	seen, err := look(ctx, reader, c)
	if err != nil {
		return Outlook{}, err
	}
	o := Outlook{Namespace: c.Namespace, Name: c.Name, Members: len(c.Status.Members)}
	step := foretold(c, seen, membership.Plan(desired(c), seen.Observed))
	if !c.Spec.Suspend && c.DeletionTimestamp.IsZero() {
		o.Objects, err = changes(ctx, reader, c, seen, step)
		if instead, ok := obstacle(err, step); ok {
			step, err = instead, nil
		}
	}
	if step = asksAnotherPeerMode(c, step); step.Reason != membership.Healthy && step.Reason != membership.Hibernated {
		o.Step = &Upcoming{Action: step.Action, Rule: step.Rule, Reason: step.Reason, Message: step.Message}
	}
	return o, err
}

// look is what observe would see, as far as it can be known without etcd. The status gets the modes
// of TLS where it lacks them.
func look(ctx context.Context, reader client.Reader, c *api.EtcdCluster) (observed, error) {
	seen, err := (&Reconciler{Reader: reader}).objects(ctx, c, reader)
	if err != nil {
		return observed{}, err
	}
	if modesUnknown(c) {
		c.Status = withModes(c, seen)
	}
	return judged(ctx, reader, c, seen)
}

// judged are the facts of objects that were seen.
func judged(ctx context.Context, reader client.Reader, c *api.EtcdCluster, seen observed) (observed, error) {
	now := time.Now()
	patience := now.Add(-replaceAfter(c))
	l := limits{now: now, stallBefore: patience, replaceBefore: patience, unavailableSeen: unavailableSince(c, now), seen: asWritten(c)}
	seen.Observed = facts(c, seen.pods, seen.claims, remembered(c), l)
	seen.Former = seen.former.facts(c, l)
	if err := observeBackup(ctx, c, &seen, reader); err != nil {
		return observed{}, err
	}
	for n := range seen.Instances {
		if i := &seen.Instances[n]; i.Endpoint.Answered() {
			i.Hash = membership.Hash{Revision: 1} // as if they had been compared, and were equal
		}
	}
	return seen, nil
}

// grown are the claims as they are once volumes have grown to what the spec asks for: what follows
// from that is foretold as well.
func grown(c *api.EtcdCluster, claims map[string]*corev1.PersistentVolumeClaim) map[string]*corev1.PersistentVolumeClaim {
	all := maps.Clone(claims)
	for name, claim := range claims {
		if small(c, claim) {
			claim = claim.DeepCopy()
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: c.Spec.Storage.Size}
			claim.Status.Capacity = claim.Spec.Resources.Requests
			all[name] = claim
		}
	}
	return all
}

// small reports whether a claim is to ask for more than it does, and can, as far as that can be
// told by reading.
func small(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim) bool {
	return c.Spec.Storage.Size.Cmp(*claim.Spec.Resources.Requests.Storage()) > 0 && claim.Status.Phase == corev1.ClaimBound && unfit(c, claim) == ""
}

// remembered is what etcd would say, as far as the status tells: a member that was seen to answer
// answers.
func remembered(c *api.EtcdCluster) answers {
	asked := answers{endpoints: map[string]membership.Endpoint{}}
	var members []membership.Member
	var leader membership.ID
	for _, m := range c.Status.Members {
		if m.Name == c.Status.Leader {
			leader = membership.ParseID(m.ID)
		}
	}
	storage := membership.Version{}
	silent := slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Version == "" }) // it may run an earlier minor
	if lowest, err := membership.ParseVersion(c.Status.Version); err == nil && lowest.Minor >= 6 && !silent { // earlier ones do not tell
		storage = membership.Version{Major: lowest.Major, Minor: lowest.Minor}
	}
	size := ptr.Deref(c.Status.DBSize, resource.Quantity{}) // of the largest, rounded up
	for _, m := range c.Status.Members {
		id := membership.ParseID(m.ID)
		if id == 0 {
			continue
		}
		members = append(members, membership.Member{ID: id, Name: m.Name, PeerURLs: []string{c.PeerURL(m.Name)}, Learner: m.Role == api.RoleLearner})
		version, err := membership.ParseVersion(m.Version)
		e := membership.Endpoint{
			ClusterID: membership.ParseID(c.Status.ClusterID), MemberID: id, Leader: leader, Version: version, Learner: m.Role == api.RoleLearner, Storage: storage,
			DBSize: size.Value(), InUse: size.Value(),
		}
		switch m.Health {
		case api.HealthHealthy:
		case api.HealthNoLeader:
			e.Leader = 0
		case api.HealthAlarm:
			e.Alarms = rememberedAlarms(c)
		default:
			continue
		}
		if err == nil {
			asked.endpoints[m.Name] = e
		}
	}
	available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
	if available != nil && (available.Status == metav1.ConditionTrue || available.Reason == api.ReasonAlarm) { // a quorum listed them
		asked.members = members
	}
	return asked
}

// rememberedAlarms are those that the status names. It does not tell whose they are.
func rememberedAlarms(c *api.EtcdCluster) []membership.Alarm {
	var alarms []membership.Alarm
	available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
	for _, kind := range []membership.AlarmKind{membership.AlarmCorrupt, membership.AlarmNoSpace} {
		if available != nil && strings.Contains(available.Message, string(kind)) {
			alarms = append(alarms, membership.Alarm{Kind: kind})
		}
	}
	return alarms
}

// changes are those of the step, of what the cluster always has, and of labels and annotations.
func changes(ctx context.Context, reader client.Reader, c *api.EtcdCluster, seen observed, step membership.Step) ([]ObjectChange, error) {
	growing := growths(c, seen, step)
	if len(growing) > 0 {
		var err error
		seen.claims = grown(c, seen.claims)
		if seen, err = judged(ctx, reader, c, seen); err != nil {
			return nil, err
		}
	}
	seen.touched = touched(c, seen, step)
	all, err := staticChanges(ctx, reader, c, seen)
	if err != nil {
		return nil, err
	}
	leaves := leaving(c, seen, step)
	for _, i := range seen.Instances {
		switch change, ok := podChange(i, step); {
		case slices.Contains(leaves, i.Name):
			all = append(all, ObjectChange{Kind: "Pod", Name: i.Name, Effect: EffectRemoved})
		case ok && givenUp(c) == "":
			all = append(all, change)
		}
	}
	all = append(all, coming(c, seen, step, len(leaves))...)
	for _, name := range maintained(seen, step) {
		of, err := metadataChanges(c, seen, name)
		if err != nil {
			return nil, err
		}
		for _, change := range of {
			if !slices.ContainsFunc(all, func(o ObjectChange) bool { return o.Kind == change.Kind && o.Name == change.Name }) {
				all = append(all, change)
			}
		}
	}
	return append(all, growing...), nil
}

// leaving are the members that are too many, and those that move to other volumes, where the
// cluster is not to sleep altogether.
func leaving(c *api.EtcdCluster, seen observed, step membership.Step) []string {
	size := desired(c).Size
	if step.Action == membership.Stall || size == 0 {
		return nil
	}
	surplus := seen.Surplus(size)
	var names []string
	for _, i := range seen.Instances {
		tooMany := slices.ContainsFunc(surplus, func(s membership.Instance) bool { return s.Name == i.Name })
		if tooMany || i.Volume.Unfit != "" && seen.Member(i.ID) != nil {
			names = append(names, i.Name)
		}
	}
	return names
}

// coming are the Pods and volumes of members that are too few when so many have left: those that
// are not there yet.
func coming(c *api.EtcdCluster, seen observed, step membership.Step, leave int) []ObjectChange {
	if step.Action == membership.Stall || len(seen.Members) == 0 {
		return nil
	}
	stay := -leave
	for _, i := range seen.Instances {
		if i.Volume.Spare || seen.Member(i.ID) != nil {
			stay++
		}
	}
	var all []ObjectChange
	next := nextOrdinal(c, seen.Instances)
	for n := range desired(c).Size - stay {
		name := c.MemberName(next + n)
		all = append(all, ObjectChange{Kind: "Pod", Name: name, Effect: EffectCreated})
		if c.Spec.Storage.Medium != api.MediumMemory {
			all = append(all, ObjectChange{Kind: "PersistentVolumeClaim", Name: name, Effect: EffectCreated})
		}
	}
	return all
}

// growths are those of the volumes that are smaller than the spec asks for. Whether their class
// lets them grow only the API server can tell.
func growths(c *api.EtcdCluster, seen observed, step membership.Step) []ObjectChange {
	var all []ObjectChange
	for _, name := range slices.Sorted(maps.Keys(seen.claims)) {
		claim := seen.claims[name]
		if i, _ := seen.Instance(name); step.Action != membership.Stall && small(c, claim) && i.ID != 0 && i.Volume.Stays() {
			size := render.Difference{Path: "spec.resources.requests.storage", From: claim.Spec.Resources.Requests.Storage().String(), To: c.Spec.Storage.Size.String()}
			all = append(all, ObjectChange{Kind: "PersistentVolumeClaim", Name: name, Effect: EffectGrown, Differences: []render.Difference{size}})
		}
	}
	return all
}

func staticChanges(ctx context.Context, reader client.Reader, c *api.EtcdCluster, seen observed) ([]ObjectChange, error) {
	service, err := clientService(ctx, reader, c)
	if err != nil {
		return nil, err
	}
	if err := valid(c, seen); err != nil {
		return nil, err
	}
	live, err := budget(ctx, reader, c)
	if err != nil {
		return nil, err
	}
	var all []ObjectChange
	for _, object := range static(c, seen, service, true, raised(c, seen, live)) { // its Pods are labelled before
		want, ok := object.(configuration)
		if !ok {
			return nil, fmt.Errorf("%T is no whole object", object)
		}
		live, err := existing(ctx, want, reader)
		if err != nil {
			return nil, fmt.Errorf("get %s %s: %w", *want.GetKind(), *want.GetName(), err)
		}
		change := ObjectChange{Kind: *want.GetKind(), Name: *want.GetName(), Effect: EffectCreated}
		if live != nil {
			if err := applicable(c, live, change.Kind); err != nil {
				return nil, err
			}
			change.Effect = EffectApplied
			if change.Differences, err = render.Differences(live, want); err != nil {
				return nil, err
			}
		}
		if change.Effect == EffectCreated || len(change.Differences) > 0 {
			all = append(all, change)
		}
	}
	return all, nil
}

// podChange is what becomes of the Pod of a member for it to be what the spec asks for, now or
// after what the step waits for.
func podChange(i membership.Instance, step membership.Step) (ObjectChange, bool) {
	change := i.Pod.Change
	if step.Action == membership.Update && slices.Contains(step.Members, i.Name) {
		change = step.Change
	}
	effect := map[membership.Change]Effect{
		membership.ChangePod: EffectRecreated, membership.ChangeImage: EffectRestarted, membership.ChangeResources: EffectResized,
	}[change]
	return ObjectChange{Kind: "Pod", Name: i.Name, Effect: effect, Parts: i.Pod.Parts}, effect != "" && step.Action != membership.Stall
}

// metadataChanges are what applyMetadata would apply.
func metadataChanges(c *api.EtcdCluster, seen observed, name string) ([]ObjectChange, error) {
	m := current(c, seen, name)
	var all []ObjectChange
	add := func(kind string, live runtime.Object, want runtime.ApplyConfiguration) error {
		differences, err := render.Differences(live, want)
		// The spec of what exists is not changed by its metadata.
		differences = slices.DeleteFunc(differences, func(d render.Difference) bool { return !strings.HasPrefix(d.Path, "metadata.") })
		if len(differences) > 0 {
			all = append(all, ObjectChange{Kind: kind, Name: name, Effect: EffectApplied, Differences: differences})
		}
		return err
	}
	if claim := seen.claims[name]; claim != nil {
		if err := add("PersistentVolumeClaim", claim, render.Volume(c, m)); err != nil {
			return nil, err
		}
	}
	pod := seen.pods[name]
	if pod == nil {
		return all, nil
	}
	metadata, err := render.PodMetadata(pod, c, m)
	if err != nil {
		return nil, &invalidError{err}
	}
	if metadata == nil {
		return all, nil
	}
	return all, add("Pod", pod, metadata)
}
