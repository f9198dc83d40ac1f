package snapshot

import (
	"context"
	"errors"
	"io"
	"time"
)

var (
	// ErrNotFound is the error of a Store for an object that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is the error of a Store for an object that is there already. Nothing is ever
	// overwritten.
	ErrExists = errors.New("exists already")
)

// Store keeps objects under keys. Every error of a method names the store and the key, and wraps
// ErrNotFound or ErrExists where that is the reason.
//
//nolint:interfacebloat // five things to do with objects, and Close
type Store interface {
	// Create makes an object of what write writes. The object is there whole or not at all: when
	// write fails, or the process dies, nothing appears under the key. ErrExists where an object is
	// there, then or at the end.
	Create(ctx context.Context, key string, write func(io.Writer) error) error
	// Open reads an object from its beginning. ErrNotFound where there is none.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// List calls each for every object whose key begins with prefix, in the order of their keys,
	// until each fails.
	List(ctx context.Context, prefix string, each func(Object) error) error
	// Delete removes an object. An object that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Location is what a person calls an object: "s3://bucket/prefix/key".
	Location(key string) string
	io.Closer
}

// Object is an object of a Store, as a list shows it.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time
}
