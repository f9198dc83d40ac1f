package snapshot

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// askTimeout bounds each question to a member. One that is slower is not taken.
const askTimeout = 5 * time.Second

// Source is a running etcd. Endpoints are URLs: of every member, or of something that leads to one
// of them, such as a Service.
type Source struct {
	Endpoints          []string
	TLS                *tls.Config
	Username, Password string
}

// member is one endpoint, and what the member behind it has said of itself.
type member struct {
	endpoint string
	client   *clientv3.Client
	patience time.Duration // with its stream: a disk that hangs ends no connection

	clusterID, id, leader uint64
	version               string
	revision, dbSize      int64
	learner               bool
	corrupt               []uint64 // members under a CORRUPT alarm; zero is all of them
}

// dial makes a client of one endpoint: what is asked and what is taken come over one connection, so
// from one member.
func (s Source) dial(endpoint string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint},
		TLS:       s.TLS,
		Username:  s.Username, Password: s.Password,
		DialTimeout:          askTimeout,
		DialKeepAliveTime:    10 * time.Second, // a connection that is dead must not hold up a stream forever
		DialKeepAliveTimeout: 10 * time.Second,
		// The addresses of members are inside of the network, and a proxy is for what is outside
		// (T66).
		DialOptions: []grpc.DialOption{grpc.WithNoProxy()},
		Logger:      zap.NewNop(), // what fails is returned
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd %s: %w", endpoint, err)
	}
	return c, nil
}

// ask every endpoint at once. The errors are of those that gave no answer. The members are to be
// closed.
func (s Source) ask(ctx context.Context) ([]*member, []error) {
	members, errs := make([]*member, len(s.Endpoints)), make([]error, len(s.Endpoints))
	var all sync.WaitGroup
	for n, endpoint := range s.Endpoints {
		all.Go(func() { members[n], errs[n] = s.askOne(ctx, endpoint) })
	}
	all.Wait()
	return slices.DeleteFunc(members, func(m *member) bool { return m == nil }),
		slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (s Source) askOne(ctx context.Context, endpoint string) (*member, error) {
	client, err := s.dial(endpoint)
	if err != nil {
		return nil, err
	}
	m := &member{endpoint: endpoint, client: client, patience: stallTimeout}
	if err := m.ask(ctx); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *member) close() { _ = m.client.Close() } // nothing is left to be sent

// maintenance is etcd's Maintenance service over the one connection of the client. clientv3's own
// dials another for a status.
func (m *member) maintenance() etcdserverpb.MaintenanceClient {
	return etcdserverpb.NewMaintenanceClient(m.client.ActiveConnection())
}

func (m *member) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := m.maintenance().Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("status of etcd %s: %w", m.endpoint, rpctypes.Error(err))
	}
	m.clusterID, m.id, m.leader = r.Header.ClusterId, r.Header.MemberId, r.Leader
	m.version, m.revision, m.dbSize, m.learner = r.Version, r.Header.Revision, r.DbSize, r.IsLearner
	m.corrupt = corrupt(r.Errors)
	return nil
}

// raisedCorrupt is how a status tells of an alarm, as text beside other remarks. A zero member is
// left out of it.
var raisedCorrupt = regexp.MustCompile(`(?:memberID:(\d+) +)?alarm:CORRUPT`)

func corrupt(remarks []string) []uint64 {
	var ids []uint64
	for _, remark := range remarks {
		for _, match := range raisedCorrupt.FindAllStringSubmatch(remark, -1) {
			id, _ := strconv.ParseUint(match[1], 10, 64) // empty: etcd could not tell
			ids = append(ids, id)
		}
	}
	return ids
}

// choose the member to take a snapshot from: of those that may be, the one with the highest
// revision, and a follower rather than the leader where they are the same. The error says of each
// member why it is not taken.
func choose(members []*member, clusterID string, silent []error) (*member, error) {
	if err := oneCluster(members, clusterID); err != nil {
		return nil, err
	}
	var fit []*member
	why := make([]string, 0, len(members)+len(silent))
	for _, m := range members {
		if reason := unfit(m, members); reason != "" {
			why = append(why, fmt.Sprintf("%s %s", m.endpoint, reason))
			continue
		}
		fit = append(fit, m)
	}
	if len(fit) > 0 {
		return slices.MaxFunc(fit, func(a, b *member) int {
			return cmp.Or(cmp.Compare(a.revision, b.revision), leads(b)-leads(a))
		}), nil
	}
	for _, err := range silent {
		why = append(why, err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrNoMember, strings.Join(why, "; "))
}

func leads(m *member) int {
	if m.leader == m.id {
		return 1
	}
	return 0
}

// oneCluster is the ErrOtherCluster of a member that is of another cluster than was asked for, or
// than the other members.
func oneCluster(members []*member, clusterID string) error {
	for _, m := range members {
		got, first := hexID(m.clusterID), members[0]
		if clusterID != "" && got != clusterID {
			return fmt.Errorf("%w: %s is a member of cluster %s, and cluster %s was asked for", ErrOtherCluster, m.endpoint, got, clusterID)
		}
		if m.clusterID != first.clusterID {
			return fmt.Errorf("%w: %s is a member of cluster %s, and %s of cluster %s: give the endpoints of one cluster",
				ErrOtherCluster, m.endpoint, got, first.endpoint, hexID(first.clusterID))
		}
	}
	return nil
}

// unfit is why a snapshot is not taken from a member, or empty. Any member may tell of an alarm of
// another.
func unfit(m *member, members []*member) string {
	switch {
	case m.learner:
		return "is a learner"
	case m.leader == 0:
		return "has no leader (without a majority of the members it is not known what was acknowledged)"
	case slices.ContainsFunc(members, func(teller *member) bool {
		return slices.Contains(teller.corrupt, m.id) || slices.Contains(teller.corrupt, 0)
	}):
		return "is under a CORRUPT alarm"
	}
	return ""
}

// hexID is an ID as etcdctl prints it.
func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// reads makes a linearizable read, and returns its revision: the member has caught up with it.
func (m *member) reads(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := m.client.Get(ctx, "\x00")
	if err != nil {
		return 0, fmt.Errorf("read from etcd %s, to know that the snapshot has all that was acknowledged (without a majority of the members it cannot): %w", m.endpoint, err)
	}
	return r.Header.Revision, nil
}

// name is etcd's name of the member.
func (m *member) name(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := m.client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list members at etcd %s: %w", m.endpoint, err)
	}
	for _, listed := range r.Members {
		if listed.ID == m.id {
			return listed.Name, nil
		}
	}
	return "", nil // removed a moment ago
}
