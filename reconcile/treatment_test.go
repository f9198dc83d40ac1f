package reconcile

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
)

// Treatment is what a reconciler makes of the error of a write, as far as it tells errors apart.
type Treatment struct {
	Conflict     bool            // it looks again soon
	Instead      membership.Step // in place of a step that was planned; its message is left out
	AtRest       membership.Step // the same where no step was planned
	Inconclusive bool            // a try (dry run) that shows nothing
	Gone         bool            // what was to be deleted is gone already
	Unanswered   bool            // etcd may still do it
}

// Treat an error with the predicates of a reconciler.
func Treat(err error) Treatment {
	r, c := &Reconciler{}, newCluster()
	r.settle(c, err)
	of, _ := r.unanswered.Load(client.ObjectKeyFromObject(c))
	instead, _ := obstacle(err, membership.Step{Action: membership.Remove, Reason: membership.ScalingDown})
	atRest, _ := obstacle(err, membership.Step{Action: membership.None, Reason: membership.Healthy})
	instead.Message, atRest.Message = "", ""
	return Treatment{
		Conflict: apierrors.IsConflict(err), Instead: instead, AtRest: atRest,
		Inconclusive: inconclusive(err) != nil, Gone: apierrors.IsNotFound(err), Unanswered: of == c.UID,
	}
}
