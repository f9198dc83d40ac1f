package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"
)

// stream takes the snapshot from the member to the store and to the plain copy, and writes down
// what has passed.
func (s *saving) stream(ctx context.Context, to io.Writer, manifest *Manifest) error {
	kept, err := os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keep a copy of the database: %w", err)
	}
	defer func() { _ = kept.Close() }() // its data does not have to outlast the machine
	stored, stream := newTally(), newDigest()
	sealed, err := encrypt(io.MultiWriter(to, stored), s.Recipients)
	if err != nil {
		return err
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err := s.pass(ctx, io.MultiWriter(stream, kept), packed); err != nil {
		_ = packed.Close() // what failed is in err
		return err
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err := sealed.Close(); err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	if detail := stream.trailer(); detail != "" {
		return &Damage{Name: s.Name, Check: CheckTrailer, Detail: detail}
	}
	manifest.TakenAt = time.Now().UTC()
	manifest.Size, manifest.SHA256 = stream.size, stream.sum()
	manifest.StoredSize, manifest.StoredSHA256 = stored.size, stored.sum()
	return nil
}

// ahead is how many blocks of the stream, of 32 KiB, a writer may be behind.
const ahead = 64

// pass the stream of the member to several writers. Each has a goroutine: what is compressed does
// not hold up what is received.
func (s *saving) pass(ctx context.Context, writers ...io.Writer) error {
	all, ctx := errgroup.WithContext(ctx)
	queues := make([]chan []byte, len(writers))
	for n, w := range writers {
		queues[n] = make(chan []byte, ahead)
		all.Go(func() error {
			for block := range queues[n] {
				if _, err := w.Write(block); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Go(func() error {
		err := s.member.snapshot(ctx, func(block []byte) error {
			for _, queue := range queues {
				select {
				case queue <- block:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}, s.report)
		for _, queue := range queues {
			close(queue)
		}
		return err
	})
	return all.Wait()
}

func (s *saving) report(done, total int64) {
	if s.Progress != nil {
		s.Progress(Progress{Stage: "save", Done: done, Total: total})
	}
}

// snapshot passes on the stream of the member, unmodified.
func (m *member) snapshot(ctx context.Context, pass func([]byte) error, report func(done, total int64)) error {
	streaming, patience := withPatience(ctx, m.patience)
	defer patience.end()
	stream, err := m.maintenance().Snapshot(streaming, &etcdserverpb.SnapshotRequest{})
	if err != nil {
		return fmt.Errorf("snapshot of etcd %s: %w", m.endpoint, err)
	}
	var done int64
	for {
		var r *etcdserverpb.SnapshotResponse
		err := patience.step(func() (err error) {
			r, err = stream.Recv()
			return err
		})
		if errors.Is(err, io.EOF) {
			break
		}
		if stall, is := errors.AsType[stalled](err); is {
			return fmt.Errorf("snapshot of etcd %s: it is connected, and its stream stalled: %w; look at the disk of that member, or save from another", m.endpoint, stall)
		}
		if err != nil {
			return fmt.Errorf("snapshot of etcd %s: %w", m.endpoint, err)
		}
		if err := pass(r.Blob); err != nil {
			return err
		}
		done += int64(len(r.Blob))
		report(done, done+int64(r.RemainingBytes))
	}
	// Behind an endpoint that leads to several members, the connection may have been made again, to
	// another one.
	before := m.id
	if err := m.ask(ctx); err != nil {
		return err
	}
	if m.id != before {
		return fmt.Errorf("snapshot of etcd %s: it led to member %s, and then to %s: save again", m.endpoint, hexID(before), hexID(m.id))
	}
	return nil
}
