package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// stream takes the snapshot from the member to the plain copy and from there to the store, and
// writes down what has passed.
func (s *saving) stream(ctx context.Context, to io.Writer, manifest *Manifest) error {
	kept, err := os.OpenFile(s.file, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
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
	if manifest.TakenAt, err = s.pass(ctx, kept, io.MultiWriter(stream, packed)); err != nil {
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
	manifest.Size, manifest.SHA256 = stream.size, stream.sum()
	manifest.StoredSize, manifest.StoredSHA256 = stored.size, stored.sum()
	return nil
}

// pass the stream of the member to the plain copy, and that to a writer, and return when the member
// had sent all. The writer may be behind as far as it likes: while etcd sends a snapshot it uses no
// page again that becomes free, and its database grows for as long as a slow store takes.
func (s *saving) pass(ctx context.Context, kept *os.File, to io.Writer) (sent time.Time, err error) {
	all, ctx := errgroup.WithContext(ctx)
	copied := &growing{ctx: ctx, file: kept, more: make(chan struct{}, 1)}
	all.Go(func() error {
		defer close(copied.more)
		received, gathered := int64(0), bufio.NewWriterSize(copied, block)
		err := s.member.snapshot(ctx, func(blob []byte, remaining int64) error {
			received += int64(len(blob))
			copied.total.Store(received + remaining)
			_, err := gathered.Write(blob)
			return err
		})
		sent = time.Now().UTC()
		if err != nil {
			return err
		}
		return gathered.Flush()
	})
	all.Go(func() error {
		_, err := io.CopyBuffer(to, reported{copied, s}, make([]byte, 256<<10))
		return err
	})
	err = all.Wait()
	return sent, err
}

// growing is a file that is read while another goroutine writes it.
type growing struct {
	ctx   context.Context // of the one pass that it is for
	file  *os.File
	size  atomic.Int64
	total atomic.Int64  // that it will have
	more  chan struct{} // has one when it has grown, and is closed when it is complete
	read  int64
}

func (g *growing) Write(p []byte) (int, error) {
	n, err := g.file.Write(p)
	g.size.Add(int64(n))
	select {
	case g.more <- struct{}{}:
	default: // there is one
	}
	return n, err
}

func (g *growing) Read(p []byte) (int, error) {
	for g.read == g.size.Load() {
		select {
		case _, open := <-g.more:
			if !open && g.read == g.size.Load() {
				return 0, io.EOF
			}
		case <-g.ctx.Done():
			return 0, g.ctx.Err()
		}
	}
	n, err := g.file.ReadAt(p[:min(int64(len(p)), g.size.Load()-g.read)], g.read)
	g.read += int64(n)
	return n, err
}

// reported tells how much of the file has been read.
type reported struct {
	*growing
	*saving
}

func (r reported) Read(p []byte) (int, error) {
	n, err := r.growing.Read(p)
	if r.Progress != nil && n > 0 {
		r.Progress(Progress{Stage: "save", Done: r.read, Total: r.total.Load()})
	}
	return n, err
}

// oneBuffer puts each message together in the same memory. gRPC takes 1 MiB for each of the 32 KiB
// and a few bytes of a snapshot, and clears all of it.
type oneBuffer struct {
	encoding.CodecV2
	buffer []byte
}

func (c *oneBuffer) Unmarshal(data mem.BufferSlice, to any) error {
	message, is := to.(proto.Message)
	if !is {
		return c.CodecV2.Unmarshal(data, to)
	}
	c.buffer = slices.Grow(c.buffer[:0], data.Len())[:data.Len()]
	data.CopyTo(c.buffer)
	return proto.Unmarshal(c.buffer, message) // which copies
}

// snapshot passes on the stream of the member, unmodified, with how much is still to come.
func (m *member) snapshot(ctx context.Context, pass func(block []byte, remaining int64) error) error {
	streaming, patience := withPatience(ctx, m.patience)
	defer patience.end()
	stream, err := m.maintenance().Snapshot(streaming, &etcdserverpb.SnapshotRequest{}, grpc.ForceCodecV2(&oneBuffer{CodecV2: encoding.GetCodecV2("proto")}))
	if err != nil {
		return fmt.Errorf("snapshot of etcd %s: %w", m.endpoint, err)
	}
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
		if err := pass(r.Blob, int64(r.RemainingBytes)); err != nil {
			return err
		}
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
