package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrLater is an answer of etcd that says nothing against the request itself: it may succeed when
// members have had time. To add a member, for example, etcd wants to have been connected to a
// quorum for five seconds (HealthInterval in server/etcdserver/server.go).
var ErrLater = errors.New("etcd is not ready for it yet")

// ErrUnanswered comes with ErrLater where etcd has stopped waiting for what it has proposed itself:
// it may still be done.
var ErrUnanswered = errors.New("whether it was done is not known")

// unanswered are the answers behind ErrUnanswered.
var unanswered = []error{
	rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex,
}

// later are the answers behind ErrLater.
var later = []error{
	rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrTooManyLearners,
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged,
}

// change makes one call that changes the cluster, under CallTimeout. The errors in done say that it
// was made before.
func (c *client) change(ctx context.Context, what string, call func(context.Context) error, done ...error) (err error) {
	defer c.ended(&err)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	err = call(ctx)
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil || slices.ContainsFunc(done, is):
		return nil
	case slices.ContainsFunc(unanswered, is):
		return fmt.Errorf("%s at etcd %s: %w: %w: %w", what, c.address, ErrLater, ErrUnanswered, err)
	case slices.ContainsFunc(later, is):
		return fmt.Errorf("%s at etcd %s: %w: %w", what, c.address, ErrLater, err)
	default:
		return fmt.Errorf("%s at etcd %s: %w", what, c.address, asDenied(err))
	}
}

func (c *client) AddLearner(ctx context.Context, peerURL string) error {
	return c.change(ctx, "add learner "+peerURL, func(ctx context.Context) error {
		_, err := c.etcd.MemberAddAsLearner(ctx, []string{peerURL})
		return err
	}, rpctypes.ErrPeerURLExist, rpctypes.ErrMemberExist) // in the same second it would get the same ID
}

func (c *client) Promote(ctx context.Context, id ID) error {
	return c.change(ctx, "promote member "+id.String(), func(ctx context.Context) error {
		_, err := c.etcd.MemberPromote(ctx, uint64(id))
		return err
	}, rpctypes.ErrMemberNotLearner)
}

func (c *client) Remove(ctx context.Context, id ID) error {
	return c.change(ctx, "remove member "+id.String(), func(ctx context.Context) error {
		_, err := c.etcd.MemberRemove(ctx, uint64(id))
		return err
	}, rpctypes.ErrMemberNotFound)
}

func (c *client) MoveLeader(ctx context.Context, to ID) error {
	return c.change(ctx, "move leadership to "+to.String(), func(ctx context.Context) error {
		_, err := c.etcd.MoveLeader(ctx, uint64(to))
		return err
	})
}

func (c *client) Disarm(ctx context.Context, kind AlarmKind, id ID) error {
	return c.change(ctx, "disarm "+string(kind)+" of member "+id.String(), func(ctx context.Context) error {
		alarm := etcdserverpb.AlarmType(etcdserverpb.AlarmType_value[string(kind)])
		_, err := c.etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: uint64(id), Alarm: alarm})
		return err
	})
}

func (c *client) Downgrade(ctx context.Context, to Version) error {
	for _, action := range []clientv3.DowngradeAction{clientv3.DowngradeValidate, clientv3.DowngradeEnable} {
		err := c.change(ctx, "downgrade to "+to.String(), func(ctx context.Context) error {
			_, err := c.etcd.Downgrade(ctx, action, fmt.Sprintf("%d.%d.0", to.Major, to.Minor))
			return err
		}, rpctypes.ErrDowngradeInProcess)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *client) CancelDowngrade(ctx context.Context) error {
	return c.change(ctx, "cancel the downgrade", func(ctx context.Context) error {
		_, err := c.etcd.Downgrade(ctx, clientv3.DowngradeCancel, "")
		return err
	}, rpctypes.ErrNoInflightDowngrade)
}
