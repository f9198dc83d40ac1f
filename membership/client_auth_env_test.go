//go:build env

package membership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// as is the client of a member for a user with a password. The operator's user has none, and is
// known by its certificate.
func (m *etcd) as(name, password string) *authClient {
	m.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url(m.client)}, DialTimeout: soon, Logger: zap.NewNop(), Username: name, Password: password})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Close() })
	return &authClient{&client{etcd: c, address: name, url: url(m.client)}}
}

// TestClientAuth: users and roles are written and read, what was done is no error when it is asked
// for again, and while etcd authenticates clients everything that changes the cluster, or reads all
// of it, takes the role root. The probes of a Pod need no user.
func TestClientAuth(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version Version) {
		m := c.members[0]
		m.bootstrapAlone()
		id := m.serving().MemberID
		anonymous := m.as("", "")
		all := Prefixed("", AccessReadWrite)
		for range 2 {
			for _, act := range []AuthAct{
				{Verb: AddUser, Name: "quorate"}, {Verb: GrantRole, Name: "quorate", Role: RootName},
				{Verb: AddUser, Name: RootName, Password: "toor"}, {Verb: GrantRole, Name: RootName, Role: RootName},
				{Verb: AddRole, Name: "all"}, {Verb: Grant, Name: "all", Permission: Prefixed("/a/", AccessRead)}, {Verb: Grant, Name: "all", Permission: all},
				{Verb: Revoke, Name: "all", Permission: Prefixed("/a/", AccessRead)},
				{Verb: AddUser, Name: "app", Password: "one"}, {Verb: SetPassword, Name: "app", Password: "two"}, {Verb: GrantRole, Name: "app", Role: "all"},
			} {
				m.made(act.String(), func(ctx context.Context) error { return Carry(ctx, anonymous, act) })
			}
		}
		permissions, err := anonymous.Permissions(c.Context(), "all")
		if diff := cmp.Diff([]Permission{all}, permissions); err != nil || diff != "" {
			c.Errorf("permissions of a role: %v; -want +got:\n%s", err, diff)
		}
		names, err := anonymous.UserNames(c.Context())
		if diff := cmp.Diff([]string{"app", "quorate", RootName}, names); err != nil || diff != "" {
			c.Errorf("users: %v; -want +got:\n%s", err, diff)
		}
		roles, err := anonymous.UserRoles(c.Context(), "app")
		if diff := cmp.Diff([]string{"all"}, roles); err != nil || diff != "" {
			c.Errorf("roles of a user: %v; -want +got:\n%s", err, diff)
		}
		for what, err := range map[string]error{
			"get a user":   second(anonymous.UserRoles(c.Context(), "nobody")),
			"get a role":   second(anonymous.Permissions(c.Context(), "nothing")),
			"grant a role": anonymous.GrantRole(c.Context(), "app", "nothing"),
		} {
			if !errors.Is(err, ErrUnknown) {
				c.Errorf("%s that does not exist: %v", what, err)
			}
		}
		m.made("enable", anonymous.Enable)
		root, app := m.as(RootName, "toor"), m.as("app", "two")
		m.made("enable again", root.Enable)

		calls := map[string]func(context.Context, *authClient) error{
			"UserNames":       func(ctx context.Context, c *authClient) error { return second(c.UserNames(ctx)) },
			"UserRoles":       func(ctx context.Context, c *authClient) error { return second(c.UserRoles(ctx, "quorate")) },
			"DeleteUser":      func(ctx context.Context, c *authClient) error { return c.DeleteUser(ctx, "gone") },
			"AddLearner":      func(ctx context.Context, c *authClient) error { return c.AddLearner(ctx, "http://127.0.0.1:1") },
			"Hash":            func(ctx context.Context, c *authClient) error { return second(c.Hash(ctx, 0)) },
			"CancelDowngrade": func(ctx context.Context, c *authClient) error { return c.CancelDowngrade(ctx) },
			"Snapshot": func(ctx context.Context, c *authClient) error {
				stream, err := c.etcd.Snapshot(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = stream.Close() }() // the first byte is enough
				return second(stream.Read(make([]byte, 1)))
			},
			"Defragment": func(ctx context.Context, c *authClient) error { return second(c.etcd.Defragment(ctx, c.url)) },
		}
		for name, call := range calls {
			for user, client := range map[string]*authClient{"no user": anonymous, "app": app} {
				if err := call(c.Context(), client); !isDenied(err) {
					c.Errorf("etcd %s: %s as %s: %v", version, name, user, err)
				}
			}
			if name != "AddLearner" {
				m.made(name+" as root", func(ctx context.Context) error { return call(ctx, root) })
			}
		}
		open := ""
		for name, call := range map[string]func() error{
			"Status":     func() error { return second(anonymous.Status(c.Context())) },
			"Members":    func() error { return second(anonymous.Members(c.Context())) },
			"Disarm":     func() error { return anonymous.Disarm(c.Context(), AlarmNoSpace, id) },
			"MoveLeader": func() error { return anonymous.MoveLeader(c.Context(), id) },
		} {
			if err := call(); !isDenied(err) {
				open += fmt.Sprintf(" %s (%v)", name, err)
			}
		}
		c.Logf("etcd %s does not deny to a client that is no user:%s", version, open)
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			if status := m.http(path); status != http.StatusOK {
				c.Errorf("%s answers %d", path, status)
			}
		}
		m.kill()
		m.resume()
		m.eventually("it authenticates clients after a restart", func(ctx context.Context) error {
			if err := second(anonymous.UserNames(ctx)); !isDenied(err) {
				return fmt.Errorf("it does not: %w", err)
			}
			return nil
		})
		m.made("disable", m.as(RootName, "toor").Disable)
		m.made("disable again", anonymous.Disable)
	})
}

// TestClientShrinks: a role that shrinks keeps nothing of what it had, also where two of its
// permissions begin with one key.
func TestClientShrinks(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version Version) {
		m := c.members[0]
		m.bootstrapAlone()
		etcd := m.as("", "")
		for _, want := range [][]Permission{
			{Single("/a", AccessRead), Prefixed("/a", AccessReadWrite)},
			{Single("/a", AccessRead), Prefixed("/a", AccessRead)},
			{Single("/a", AccessWrite), Prefixed("/a", AccessRead), Between("/a", "", AccessWrite)},
			{Prefixed("/a", AccessWrite)},
		} {
			has, err := etcd.Permissions(c.Context(), "r")
			for _, act := range PlanRole("r", want, has, !errors.Is(err, ErrUnknown)) {
				m.made(act.String(), func(ctx context.Context) error { return Carry(ctx, etcd, act) })
			}
			got, err := etcd.Permissions(c.Context(), "r")
			SortPermissions(want)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				c.Fatalf("etcd %s: permissions of a role: %v; -want +got:\n%s", version, err, diff)
			}
		}
	})
}

// TestClientWatches: etcd asks whether a watch is permitted when it begins, and not again. The
// documents say so.
func TestClientWatches(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version Version) {
		m := c.members[0]
		m.bootstrapAlone()
		anonymous, root := m.as("", ""), m.as(RootName, "toor")
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		defer cancel()
		act := func(etcd *authClient, acts ...AuthAct) {
			c.Helper()
			for _, act := range acts {
				m.made(act.String(), func(ctx context.Context) error { return Carry(ctx, etcd, act) })
			}
		}
		watch := func(etcd *authClient) clientv3.WatchChan {
			c.Helper()
			events := etcd.etcd.Watch(ctx, "/a/key", clientv3.WithCreatedNotify())
			if r := <-events; r.Err() != nil || !r.Created {
				c.Fatalf("etcd %s: a watch does not begin: %+v", version, r)
			}
			return events
		}
		goesOn := func(what string, events clientv3.WatchChan) {
			c.Helper()
			if _, err := root.etcd.Put(ctx, "/a/key", what); err != nil {
				c.Fatal(err)
			}
			if r := <-events; r.Err() != nil || len(r.Events) != 1 || string(r.Events[0].Kv.Value) != what {
				c.Errorf("etcd %s: the watch of %s has ended: %+v", version, what, r)
			}
		}
		stranger := watch(anonymous)
		act(anonymous,
			AuthAct{Verb: AddUser, Name: RootName, Password: "toor"}, AuthAct{Verb: GrantRole, Name: RootName, Role: RootName},
			AuthAct{Verb: AddRole, Name: "a"}, AuthAct{Verb: Grant, Name: "a", Permission: Prefixed("/a/", AccessRead)},
			AuthAct{Verb: AddUser, Name: "app", Password: "p"}, AuthAct{Verb: GrantRole, Name: "app", Role: "a"}, AuthAct{Verb: EnableAuth})
		goesOn("a client that is no user", stranger)
		user := watch(m.as("app", "p"))
		act(root, AuthAct{Verb: DeleteUser, Name: "app"})
		goesOn("a user that was deleted", user)
		if r := <-anonymous.etcd.Watch(ctx, "/a/key"); r.Err() == nil {
			c.Errorf("etcd %s: a client that is no user begins a watch", version)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// isDenied reports whether etcd has denied access. Some calls of etcd 3.5 say so in words alone.
func isDenied(err error) bool {
	return errors.Is(err, ErrDenied) || err != nil && (strings.Contains(err.Error(), "user name is empty") || strings.Contains(err.Error(), "permission denied"))
}

// http is how the member answers at the port for probes.
func (m *etcd) http(path string) int {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url(m.metrics)+path, http.NoBody)
	if err != nil {
		m.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
