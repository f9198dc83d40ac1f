package snapshot

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

func openGCS(ctx context.Context, c Config) (Store, error) {
	base := cloudTransport()
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
	// Without these, it tries for ever.
	client.SetRetry(storage.WithMaxAttempts(attempts), storage.WithBackoff(gax.Backoff{Initial: time.Second, Max: 10 * time.Second, Multiplier: 2}))
	blobs, err := gcsblob.OpenBucket(ctx, nil, c.GCS.Bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	return newBucket(c, blobs, client.Close), nil
}

// cloudTransport is the transport of Go's standard library with the bounds of these stores.
func cloudTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: answerTimeout,
	}
}
