package reconcile

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// A pass makes spec.auth true: etcd authenticates clients, or it does not. What else users and
// roles are is seen to by package users. Quorate needs the role root to list and change members, so
// it has a user of its own: the common name of its certificate. Where etcd denies it access all the
// same, such as after a restore of a foreign snapshot, and mode is Managed, the authority makes a
// certificate for root, which etcd never lets anything delete while it authenticates clients.

// access is what a look at etcd's users has found.
type access struct {
	status *api.AuthStatus // status.auth
	// said is the step that the status reports in place of the one of a healthy cluster; zero:
	// nothing is to be said.
	said membership.Step
	// settled: etcd was as this spec says when it was looked at last.
	settled bool

	cluster    types.UID
	generation int64
	clusterID  string
	again      time.Time // when to look again, at the latest; zero: with the next pass, whenever that is
}

// accesses are the last looks at clusters. denied are the clusters of which etcd has denied the
// operator an act since: it may be looked at by any client, and changed by those with the role root
// alone.
type accesses struct{ known, denied sync.Map } // *access, and a UID, by types.NamespacedName

func (a *accesses) forget(key types.NamespacedName) { a.known.Delete(key); a.denied.Delete(key) }

// deny has the next pass look at etcd's users, whatever was found before.
func (a *accesses) deny(c *api.EtcdCluster) {
	a.denied.Store(client.ObjectKeyFromObject(c), c.UID)
}

func (a *accesses) isDenied(c *api.EtcdCluster) bool {
	uid, _ := a.denied.Load(client.ObjectKeyFromObject(c))
	return uid == c.UID
}

// of is the last look at the cluster as it is now; nil: there is none.
func (a *accesses) of(c *api.EtcdCluster, now time.Time) *access {
	known, _ := a.known.Load(client.ObjectKeyFromObject(c))
	last, ok := known.(*access)
	if !ok || last.cluster != c.UID || last.generation != c.Generation || last.clusterID != c.Status.ClusterID || !now.Before(last.again) {
		return nil
	}
	return last
}

// isSettled reports whether etcd was as the spec says when it was looked at last.
func (a *accesses) isSettled(c *api.EtcdCluster) bool {
	known, _ := a.known.Load(client.ObjectKeyFromObject(c))
	last, ok := known.(*access)
	return ok && last.settled && last.cluster == c.UID && last.generation == c.Generation && last.clusterID == c.Status.ClusterID
}

// authenticate makes spec.auth true, as far as that is possible now, and returns what there is to
// report; nil: nothing, as where the cluster has never had spec.auth. Its only error is a conflict.
func (r *Reconciler) authenticate(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) (*access, error) {
	now, key := time.Now(), client.ObjectKeyFromObject(c)
	denied := seen.denied || r.accesses.isDenied(c)
	switch {
	case c.Spec.Auth == nil && c.Status.Auth == nil && !denied:
		r.accesses.forget(key)
		return nil, nil
	case c.Spec.Suspend || !c.DeletionTimestamp.IsZero():
		return nil, nil
	}
	if last := r.accesses.of(c, now); last != nil && !denied && c.WantsAuth() == c.HasAuth() {
		return last, nil
	}
	found := &access{status: c.Status.Auth.DeepCopy(), cluster: c.UID, generation: c.Generation, clusterID: c.Status.ClusterID, again: now.Add(r.nextLook(c))}
	found.settled = r.accesses.isSettled(c)
	l := &authLook{r: r, c: c, seen: seen, step: step, now: now, found: found}
	err := l.look(ctx)
	switch {
	case apierrors.IsConflict(err):
		return nil, err
	case err != nil: // the members are seen to all the same
		log.FromContext(ctx).Info("Users of etcd cannot be seen to", "error", err.Error())
		found.again = now.Add(whileWaiting)
		l.failed(err)
	}
	r.accesses.known.Store(key, found)
	return found, nil
}

// authenticateAndAct makes spec.auth true, and then carries out the step. Its errors are those of
// act, and a conflict.
func (r *Reconciler) authenticateAndAct(ctx context.Context, c *api.EtcdCluster, seen *observed, step membership.Step) error {
	var err error
	if seen.access, err = r.authenticate(ctx, c, *seen, step); err != nil {
		return err
	}
	err = r.act(ctx, c, *seen, step)
	if errors.Is(err, membership.ErrDenied) {
		r.accesses.deny(c)
	}
	return err
}

// authLook is one look at the users of a cluster.
type authLook struct {
	r     *Reconciler
	c     *api.EtcdCluster
	seen  observed
	step  membership.Step
	now   time.Time
	found *access
}

func (l *authLook) look(ctx context.Context) error {
	c := l.c
	switch {
	case !c.ClientTLS() && (l.seen.denied || l.r.accesses.isDenied(c)):
		l.say(membership.Stall, api.ReasonAccessDenied, "etcd authenticates clients, as its data says, and the operator has no certificate, because spec.tls.client.mode is Disabled. "+
			"If an EtcdRestore brought this about, delete it. Else delete the EtcdCluster, of which the volumes stay, and apply it again with spec.auth.enabled and spec.tls.client.mode Managed (docs/auth.md#after-a-restore)")
		return nil
	case !c.ClientTLS():
		if c.WantsAuth() {
			l.say(membership.Stall, api.ReasonAuthBlocked, "spec.auth.enabled needs TLS for clients, and there is none (status.tls.client.mode is Disabled): set spec.tls.client.mode to Managed or Secret, or spec.auth.enabled to false")
		}
		return nil
	case l.seen.denied:
		return l.regain(ctx)
	case l.seen.Reach != membership.ReachQuorum || !l.seen.Formed(), l.begins() && !isHealthy(l.step): // later
		l.found.again = time.Time{}
		return nil
	}
	own := l.own()
	if own == "" {
		return errors.New("the operator has no certificate, or one without a common name")
	}
	etcd, err := l.r.Auth(ctx, c)
	if err != nil {
		return err
	}
	if c.Spec.Auth == nil && c.Status.Auth == nil { // it was denied, and nothing is to be changed
		_, err = etcd.UserNames(ctx)
	} else {
		err = l.settle(ctx, etcd, own)
	}
	err = errors.Join(err, etcd.Close())
	if errors.Is(err, membership.ErrDenied) {
		return l.regain(ctx)
	}
	if err == nil {
		l.r.accesses.denied.Delete(client.ObjectKeyFromObject(c))
	}
	return err
}

// failed says that the spec is not carried out, unless it is known to have been.
func (l *authLook) failed(err error) {
	if l.found.settled || l.found.said.Action != "" || !l.c.WantsAuth() && !l.c.HasAuth() {
		return
	}
	l.say(membership.Wait, api.ReasonAuthBlocked, podstatus.Within("spec.auth is not known to be carried out, and this is tried again: "+podstatus.FirstLine(err.Error()), mostSaid))
}

// begins reports whether etcd is to authenticate clients, and does not yet as far as is known.
func (l *authLook) begins() bool {
	return l.c.WantsAuth() && !l.c.HasAuth() && !l.r.accesses.isDenied(l.c)
}

func isHealthy(step membership.Step) bool {
	return step.Action == membership.None && step.Reason == membership.Healthy
}

// own is the operator's own user.
func (l *authLook) own() string {
	return pki.CommonName(l.r.keys.of(l.c).configs[l.c.OperatorSecret()])
}

// regain gives the operator its user back, with a certificate for root.
func (l *authLook) regain(ctx context.Context) error {
	c, own := l.c, l.own()
	user := cmp.Or(own, "NAME")
	authority := l.r.keys.of(c).authority
	switch {
	case c.Spec.Auth == nil && c.Status.Auth == nil:
		l.say(membership.Stall, api.ReasonAccessDenied, "etcd authenticates clients, and denies access to Quorate: set spec.auth.enabled to true, so that Quorate sees to that user, or to false, so that etcd authenticates no clients (docs/auth.md#after-a-restore)")
		return nil
	case c.ClientTLSMode() != api.TLSManaged || authority == nil || !authority.Issues() || own == "":
		l.say(membership.Stall, api.ReasonAccessDenied, fmt.Sprintf("etcd authenticates clients, and denies access to Quorate's user (the common name in Secret %[2]s). As a user with the role root, run: etcdctl user add %[1]s --no-password, unless it exists, and: etcdctl user grant-role %[1]s root (docs/auth.md#quorates-own-access)", user, c.OperatorSecret()))
		return nil
	}
	config, err := authority.Client(membership.RootName, authority.PEM(), l.now)
	if err != nil {
		return err
	}
	l.say(membership.Stall, api.ReasonAccessDenied, "etcd authenticates clients, and denies access to Quorate's user "+own+"; Quorate connects as root to restore that user, and etcd does not let it yet")
	all, err := podsOf(ctx, cached{l.r.Client, c.Name}, c)
	if err != nil {
		return err
	}
	err = errors.New("no member can be asked")
	for _, pod := range askable(c, all) {
		var etcd membership.Auth
		if etcd, err = l.r.dialAuth(c, pod, config); err != nil {
			return err
		}
		if err = errors.Join(l.settle(ctx, etcd, own), etcd.Close()); err == nil {
			l.found.said, l.found.again = membership.Step{}, l.now
			return nil
		}
	}
	return err
}

// settle makes what etcd has as it is wanted.
func (l *authLook) settle(ctx context.Context, etcd membership.Auth, own string) error {
	c := l.c
	has, err := observeAuth(ctx, etcd, own)
	if err != nil {
		return err
	}
	wanted, version, err := l.wanted(ctx, own)
	if err != nil {
		return err
	}
	l.found.settled = l.found.settled && has.Enabled == wanted.Enabled
	acts := membership.PlanAuth(wanted, has)
	if slices.ContainsFunc(acts, func(a membership.AuthAct) bool { return a.Verb == membership.EnableAuth }) {
		// The schema keeps spec.tls.client.mode as it is from now on. Where the spec has changed
		// since, this is a conflict.
		next := *c.Status.DeepCopy()
		next.Auth = &api.AuthStatus{Enabled: true, User: own, RootPassword: version, ClusterID: c.Status.ClusterID}
		if err := l.r.report(ctx, c, next); err != nil {
			return err
		}
		l.found.status = next.Auth.DeepCopy() // also where no answer tells whether it was done
	}
	for _, act := range acts {
		if err := membership.Carry(ctx, etcd, act); err != nil {
			return err
		}
	}
	l.tell(acts)
	switch {
	case c.Spec.Auth == nil:
		l.found.status, l.found.settled = nil, true
		return nil
	case !wanted.Enabled, !has.Enabled && !wanted.Ready:
		l.found.status, l.found.settled = &api.AuthStatus{}, !wanted.Enabled
		return nil
	}
	l.found.settled = true
	l.found.status = &api.AuthStatus{Enabled: true, User: own, RootPassword: version, ClusterID: c.Status.ClusterID}
	l.found.status.Unmanaged, err = l.unmanaged(ctx, etcd, own)
	return err
}

// observeAuth tells what etcd has.
func observeAuth(ctx context.Context, etcd membership.Auth, own string) (membership.ObservedAuth, error) {
	o := membership.ObservedAuth{Users: map[string][]string{}}
	var err error
	if o.Enabled, err = etcd.Enabled(ctx); err != nil {
		return o, err
	}
	for _, name := range []string{own, membership.RootName} {
		roles, err := etcd.UserRoles(ctx, name)
		switch {
		case errors.Is(err, membership.ErrUnknown):
		case err != nil:
			return o, err
		default:
			o.Users[name] = roles
		}
	}
	return o, nil
}

// tell writes an event of what was done.
func (l *authLook) tell(acts []membership.AuthAct) {
	if len(acts) == 0 {
		return
	}
	text := ""
	switch acts[len(acts)-1].Verb {
	case membership.EnableAuth:
		text = "etcd authenticates clients from now on"
	case membership.DisableAuth:
		text = "etcd does not authenticate clients any more: each one may do everything"
	default:
		text = "Changed users of etcd: " + told(acts)
	}
	l.r.Recorder.Eventf(l.c, nil, corev1.EventTypeNormal, api.ReasonAuthChanged, "Authenticate", "%s", text)
}

// told is what acts do, in one line.
func told(acts []membership.AuthAct) string {
	return podstatus.Within(membership.JoinActs(acts), mostSaid)
}

// say what the status reports.
func (l *authLook) say(action membership.Action, reason, message string) {
	l.found.said = membership.Step{Action: action, Reason: membership.Reason(reason), Message: message}
}

// rootPassword is which password root has, as far as the status knows of this cluster.
func rootPassword(c *api.EtcdCluster) string {
	if s := c.Status.Auth; s != nil && s.ClusterID == c.Status.ClusterID {
		return s.RootPassword
	}
	return ""
}

// generated is what the status says of a password that is stored nowhere.
const generated = "generated"

// wanted is what the spec asks for, and which password of root that is.
func (l *authLook) wanted(ctx context.Context, own string) (w membership.WantedAuth, version string, _ error) {
	c := l.c
	w = membership.WantedAuth{Enabled: c.WantsAuth(), Own: own}
	if !w.Enabled {
		return w, "", nil
	}
	password, version := rand.Text(), generated
	if ref := c.Spec.Auth.RootSecretRef; ref != nil {
		var wrong string
		var err error
		if password, version, wrong, err = ReadPassword(ctx, l.r.Reader, c.Namespace, ref.Name); err != nil {
			return w, "", err
		}
		if wrong != "" {
			l.say(membership.Stall, api.ReasonAuthBlocked, "the password of root cannot be used: "+wrong+" (spec.auth.rootSecretRef). "+goesOn(c))
		}
	}
	w.RootPassword, w.SetRoot = password, password != "" && version != rootPassword(c)
	if password == "" { // root keeps the one that it has; what a restore has left open is not left so
		w.RootPassword, w.Ready = rand.Text(), c.HasAuth()
		return w, rootPassword(c), nil
	}
	waits, err := l.waits(ctx)
	w.Ready = err == nil && !waits
	return w, version, err
}

// goesOn says what stays as it is.
func goesOn(c *api.EtcdCluster) string {
	if c.HasAuth() {
		return "root keeps the password that it has, or has one that is stored nowhere"
	}
	return "etcd does not authenticate clients until it can"
}
