package snapshot

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

func openGCS(ctx context.Context, c Config, d dial) (Store, error) {
	base := cloudTransport(d)
	httpClient := &http.Client{Transport: base}
	// Looking for credentials belongs to the opening of the store, renewing them does not.
	found, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), storage.ScopeReadWrite)
	switch {
	case err == nil:
		httpClient.Transport = &oauth2.Transport{Base: base, Source: found.TokenSource}
	case c.GCS.Endpoint == "":
		return nil, &StoreError{
			Reason: ReasonNoCredentials, Op: "open", Location: c.location(), Detail: "none are in the environment, or of a workload identity",
			Advice: credentialsAdvice["gs"], Err: err,
		}
	}
	options := []option.ClientOption{option.WithHTTPClient(httpClient)}
	if c.GCS.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimSuffix(c.GCS.Endpoint, "/")+"/storage/v1/"), storage.WithJSONReads())
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// Without these, it tries for ever. For uploads they do not count (tries), nor for a read that
	// breaks (the patience of a bucket that is read).
	client.SetRetry(storage.WithMaxAttempts(attempts), storage.WithBackoff(gax.Backoff{Initial: time.Second, Max: 10 * time.Second, Multiplier: 2}))
	blobs, err := gcsblob.OpenBucket(ctx, nil, c.GCS.Bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	return newBucket(c, blobs, client.Close), nil
}

// tries bounds how often the library of Google sends one part of an upload: by itself it goes on
// for as long as the store stalls, or fails for a moment. That it reads on tells that a part is
// stored.
type tries struct{ failed atomic.Int32 }

func (t *tries) between(parts io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		t.failed.Store(0)
		return parts.Read(p)
	})
}

// bound is for blob.WriterOptions.BeforeWrite. It changes nothing for other stores.
func (t *tries) bound(as func(any) bool) error {
	var object **storage.ObjectHandle
	if as(&object) {
		*object = (*object).Retryer(storage.WithErrorFunc(func(err error) bool {
			return storage.ShouldRetry(err) && t.failed.Add(1) < attempts
		}))
	}
	return nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// cloudTransport is the transport of Go's standard library with the bounds of these stores.
func cloudTransport(d dial) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           d.watched,
		MaxIdleConns:          100,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
	}
}
