package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is a Store. A fault may fail what it names, or lie: it is asked before every call.
type memory struct {
	mutex   sync.Mutex
	objects map[string][]byte
	calls   []string
	fault   func(call, key string) error // nil: none
	// wrap is what an object is read through, and what it is written through.
	read  func(key string, r io.Reader) io.Reader
	write func(key string, w io.Writer) io.Writer
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}} }

func (m *memory) called(ctx context.Context, call, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.calls = append(m.calls, call+" "+key)
	if m.fault == nil {
		return nil
	}
	if err := m.fault(call, key); err != nil {
		return fmt.Errorf("%s %s: %w", call, m.Location(key), err)
	}
	return nil
}

func (m *memory) Create(ctx context.Context, key string, write func(io.Writer) error) error {
	var b bytes.Buffer
	var to io.Writer = &b
	if m.write != nil {
		to = m.write(key, to)
	}
	if err := write(to); err != nil {
		return fmt.Errorf("create %s: %w", m.Location(key), err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.called(ctx, "create", key); err != nil {
		return err
	}
	if _, there := m.objects[key]; there {
		return fmt.Errorf("create %s: %w", m.Location(key), ErrExists)
	}
	m.objects[key] = b.Bytes()
	return nil
}

func (m *memory) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.called(ctx, "open", key); err != nil {
		return nil, err
	}
	object, there := m.objects[key]
	if !there {
		return nil, fmt.Errorf("open %s: %w", m.Location(key), ErrNotFound)
	}
	var from io.Reader = bytes.NewReader(object)
	if m.read != nil {
		from = m.read(key, from)
	}
	return io.NopCloser(from), nil
}

func (m *memory) List(ctx context.Context, prefix string, each func(Object) error) error {
	m.mutex.Lock()
	if err := m.called(ctx, "list", prefix); err != nil {
		m.mutex.Unlock()
		return err
	}
	var listed []Object
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.HasPrefix(key, prefix) {
			listed = append(listed, Object{Key: key, Size: int64(len(m.objects[key])), Modified: time.Unix(0, 0)})
		}
	}
	m.mutex.Unlock()
	for _, o := range listed {
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Delete(ctx context.Context, key string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.called(ctx, "delete", key); err != nil {
		return err
	}
	delete(m.objects, key)
	return nil
}

func (m *memory) Location(key string) string { return "memory://" + key }
func (m *memory) Close() error               { return nil }

// keys are those of the objects that are there.
func (m *memory) keys() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

var _ Store = (*memory)(nil)
