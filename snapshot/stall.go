package snapshot

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// stallTimeout bounds how long nothing may come or go where something is waited for: over a
// connection to a store, from an object that is read, from the stream of a member. It is no bound
// of the whole. A store has as long to think about a request that it has got: servers that put the
// parts of a large object together need their time.
const stallTimeout = 2 * time.Minute

// stalled is the error of a wait in which nothing came or went for so long.
type stalled time.Duration

func (s stalled) Error() string { return "nothing came or went for " + time.Duration(s).String() }

// Timeout and Temporary make it a net.Error: the libraries of the stores try such a request again.
func (stalled) Timeout() bool   { return true }
func (stalled) Temporary() bool { return true }

// Is makes it a timeout for callers that do not tell one from another.
func (stalled) Is(target error) bool { return target == context.DeadlineExceeded }

// dial connects to a store.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// watched connects as dial does, and ends a connection over which nothing passes while something is
// waited for. HTTP/1.1 has one request at a time on a connection: what passes is of that. HTTP/2
// has several, and answers pings for one that stalls, so no store is spoken to by it.
func (d dial) watched(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: c}, nil
}

// watchedConn is a connection whose deadlines move with what passes. An answer is waited for while
// its request is written: what is written moves both, and what ends one of them ends the other.
type watchedConn struct {
	net.Conn
	stalled atomic.Bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.Conn.Read(p)
	return n, c.failed(err)
}

func (c *watchedConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(stallTimeout))
	}
	return n, c.failed(err)
}

// failed says why the connection ended, whatever was noticed first.
func (c *watchedConn) failed(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.stalled.Store(true)
	}
	if err != nil && c.stalled.Load() {
		return stalled(stallTimeout)
	}
	return err
}

// patience gives up a context in which one step takes too long.
type patience struct {
	ctx    context.Context // of what is done in steps
	giveUp context.CancelCauseFunc
	bound  time.Duration // of a step
}

func withPatience(ctx context.Context, bound time.Duration) (context.Context, patience) {
	ctx, giveUp := context.WithCancelCause(ctx)
	return ctx, patience{ctx: ctx, giveUp: giveUp, bound: bound}
}

// step waits for next. An error that comes of giving up is stalled.
func (p patience) step(next func() error) error {
	timer := time.AfterFunc(p.bound, func() { p.giveUp(stalled(p.bound)) })
	defer timer.Stop()
	err := next()
	if gaveUp, is := errors.AsType[stalled](context.Cause(p.ctx)); is && err != nil {
		return gaveUp
	}
	return err
}

func (p patience) end() { p.giveUp(context.Canceled) }

// patiently reads what comes in time.
type patiently struct {
	from io.ReadCloser
	patience
}

func (r *patiently) Read(p []byte) (n int, err error) {
	err = r.step(func() error {
		n, err = r.from.Read(p)
		return err
	})
	return n, err
}

func (r *patiently) Close() error {
	defer r.end()
	return r.from.Close()
}
