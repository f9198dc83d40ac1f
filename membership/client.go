package membership

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// CallTimeout bounds every call to etcd. A slower member is of no use to clients, and one sick
// member must never hold up the look at the others.
const CallTimeout = 2 * time.Second

// Client is what is asked of one member. Every call has CallTimeout, and its error names the call
// and the member once.
type Client interface {
	Reporter
	Changer
	Downgrader
	Close() error
}

// Reporter tells of a member and of its cluster, and changes nothing.
type Reporter interface {
	// Status is the member's own account of itself. It needs no quorum. ErrDenied: etcd
	// authenticates clients, and this one is no user with the role root; so it is of the others.
	Status(ctx context.Context) (Endpoint, error)
	// Members is etcd's member list, read linearizably: it fails without a quorum, and is never
	// stale.
	Members(ctx context.Context) ([]Member, error)
	// Hash is that of the member's data at a revision, or at its present one where the revision is
	// 0. It reads the whole database, under HashTimeout instead of CallTimeout, and the member
	// applies nothing meanwhile. It needs no quorum. ErrCompacted: that revision is compacted.
	Hash(ctx context.Context, revision int64) (Hash, error)
}

// Changer changes the cluster. Nothing that changes the list of members is tried again by itself,
// since a reply that was lost may have been to a change that was made: look again instead.
// MoveLeader and Disarm, which do no more the second time, etcd's client tries again while etcd is
// unavailable, until CallTimeout. What had been done already is no error. ErrLater says that etcd
// refuses for now.
type Changer interface {
	// AddLearner adds a member that is reached at the peer URL, without a vote.
	AddLearner(ctx context.Context, peerURL string) error
	// Promote gives a learner a vote, if the leader finds that it has caught up.
	Promote(ctx context.Context, id ID) error
	// Remove takes a member out of the list. Its ID and its data are of no use afterwards.
	Remove(ctx context.Context, id ID) error
	// MoveLeader gives the leadership to a voter. Only the leader can be asked for it.
	MoveLeader(ctx context.Context, to ID) error
	// Disarm takes back the alarm of a member.
	Disarm(ctx context.Context, kind AlarmKind, id ID) error
}

// Downgrader prepares the cluster for an earlier minor, in the same manner.
type Downgrader interface {
	// Downgrade has the cluster make its data readable for an earlier minor, after etcd has found
	// that this can be done.
	Downgrade(ctx context.Context, to Version) error
	// CancelDowngrade takes that back.
	CancelDowngrade(ctx context.Context) error
}

// Lasting is a Client that can be used for more than one look at a member, and then needs no new
// connection. Those of Dial and DialTLS are.
type Lasting interface {
	Client
	// Lasts reports whether the connection is there and every call on it has succeeded so far. A
	// Client that does not last is closed: another one finds a member that was restarted sooner.
	Lasts() bool
}

// Dialer makes a Client of one member, whose host is an IP address: looking at a member never
// depends on DNS. It does not wait for the connection; the first call does.
type Dialer func(host string, port int) (Client, error)

// SecureDialer is a Dialer of members with TLS. The configuration has the name that the member's
// certificate is checked for: its host is an IP address.
type SecureDialer func(host string, port int, config *tls.Config) (Client, error)

// Dial is the Dialer for real members.
func Dial(host string, port int) (Client, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	return dial(address, "http://"+address, nil, toMembers)
}

// DialTLS is the SecureDialer for real members. gRPC checks a certificate for the name in the URL,
// and takes no notice of tls.Config.ServerName. So that is the name in the URL, and the address is
// dialed in its place.
func DialTLS(host string, port int, config *tls.Config) (Client, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	to := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
	url := "https://" + net.JoinHostPort(config.ServerName, strconv.Itoa(port))
	return dial(address, url, config, append(slices.Clone(toMembers), to))
}

func dial(address, url string, config *tls.Config, options []grpc.DialOption) (Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{url},
		TLS:         config,
		DialTimeout: CallTimeout,
		// A call that takes long (Hash) must not wait for an answer on a connection that is dead.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		MaxCallRecvMsgSize:   mostAnswer,
		DialOptions:          options,
		Logger:               zap.NewNop(), // what fails is returned, and logged once by the caller
	})
	if err != nil {
		return nil, fmt.Errorf("dial etcd %s: %w", address, err)
	}
	// Status and HashKV of clientv3 make another connection for each call. There is one endpoint,
	// so all calls use its connection.
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(c, c.ActiveConnection()), c)
	return &client{etcd: c, address: address, url: url}, nil
}

type client struct {
	etcd         *clientv3.Client
	address, url string
	failed       atomic.Bool // a call has failed
}

var _ Lasting = (*client)(nil)

func (c *client) Close() error { return c.etcd.Close() }

func (c *client) Lasts() bool {
	return !c.failed.Load() && c.etcd.ActiveConnection().GetState() == connectivity.Ready
}

// ended is deferred by each call.
func (c *client) ended(err *error) {
	if *err != nil {
		c.failed.Store(true)
	}
}

func (c *client) Status(ctx context.Context) (_ Endpoint, err error) {
	defer c.ended(&err)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := c.etcd.Status(ctx, c.url)
	if err != nil {
		return Endpoint{}, fmt.Errorf("status of etcd %s: %w", c.address, asDenied(err))
	}
	version, err := ParseVersion(r.Version)
	if err != nil {
		return Endpoint{}, fmt.Errorf("status of etcd %s: %w", c.address, err)
	}
	return Endpoint{
		ClusterID: ID(r.Header.ClusterId),
		MemberID:  ID(r.Header.MemberId),
		Revision:  r.Header.Revision,
		Leader:    ID(r.Leader),
		Version:   version,
		Learner:   r.IsLearner,
		RaftTerm:  r.RaftTerm,
		RaftIndex: r.RaftIndex,
		Applied:   r.RaftAppliedIndex,
		Storage:   minor(r.StorageVersion),
		Downgrade: downgrade(r.DowngradeInfo),
		DBSize:    r.DbSize,
		InUse:     r.DbSizeInUse,
		Alarms:    alarms(r.Errors),
	}, nil
}

// minor is a version that etcd tells as MAJOR.MINOR, with a patch that means nothing.
func minor(s string) Version {
	v, err := ParseVersion(s)
	if err != nil {
		return Version{} // not told
	}
	return Version{v.Major, v.Minor, 0}
}

func downgrade(info *etcdserverpb.DowngradeInfo) Version {
	if !info.GetEnabled() {
		return Version{}
	}
	return minor(info.GetTargetVersion())
}

// raisedAlarm is how a status tells of an alarm, as text beside other remarks, so that a look at a
// member needs no second call. A zero member is left out.
var raisedAlarm = regexp.MustCompile(`(?:memberID:(\d+) +)?alarm:(NOSPACE|CORRUPT)`)

func alarms(remarks []string) []Alarm {
	var raised []Alarm
	for _, remark := range remarks {
		for _, m := range raisedAlarm.FindAllStringSubmatch(remark, -1) {
			id, _ := strconv.ParseUint(m[1], 10, 64) // empty: etcd could not tell
			raised = append(raised, Alarm{Kind: AlarmKind(m[2]), Member: ID(id)})
		}
	}
	slices.SortFunc(raised, func(a, b Alarm) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), cmp.Compare(a.Member, b.Member))
	})
	raised = slices.Compact(raised)
	return raised[:min(len(raised), mostAlarms)]
}

func (c *client) Members(ctx context.Context) (_ []Member, err error) {
	defer c.ended(&err)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := c.etcd.MemberList(ctx) // linearizable unless asked otherwise
	if err != nil {
		return nil, fmt.Errorf("list members at etcd %s: %w", c.address, asDenied(err))
	}
	if len(r.Members) > mostListed {
		return nil, fmt.Errorf("list members at etcd %s: it lists %d, more than any cluster has", c.address, len(r.Members))
	}
	members := make([]Member, 0, len(r.Members))
	for _, m := range r.Members {
		members = append(members, member(m))
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}

func member(m *etcdserverpb.Member) Member {
	peers := slices.Clone(m.PeerURLs)
	slices.Sort(peers)
	return Member{ID: ID(m.ID), Name: m.Name, PeerURLs: peers, Learner: m.IsLearner}
}
