package snapshot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	"gocloud.dev/blob/s3blob"
)

const (
	// dialTimeout bounds one attempt to connect to a store. There are attempts attempts, a few
	// seconds apart.
	dialTimeout = 10 * time.Second
	attempts    = 3
	// abortTimeout bounds the removal of the parts of an upload that was given up.
	abortTimeout = 30 * time.Second
)

func openS3(ctx context.Context, c Config, d dial) (Store, error) {
	transport, err := s3Transport(c.S3.CABundle, d)
	if err != nil {
		return nil, err
	}
	loaded, err := config.LoadDefaultConfig(
		ctx, config.WithHTTPClient(transport), config.WithRetryMaxAttempts(attempts), config.WithLogger(logging.Nop{}), // errors say it all
	)
	if err != nil {
		return nil, &StoreError{Reason: ReasonInvalidCredentials, Op: "open", Location: c.location(), Err: err, Advice: credentialsAdvice["s3"]}
	}
	if c.S3.Region != "" {
		loaded.Region = c.S3.Region
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.HTTPClient = loaded.HTTPClient // AWS_DEFAULTS_MODE would have it connect otherwise
		s3Options(c.S3, o)
	})
	options := client.Options()
	if options.Region == "" {
		return nil, &StoreError{
			Reason: ReasonWrongRegion, Op: "open", Location: c.location(), Detail: "no region is set", Advice: advice(c, ReasonWrongRegion),
		}
	}
	if _, err := loaded.Credentials.Retrieve(ctx); err != nil {
		return nil, noCredentials(c, err)
	}
	blobs, err := s3blob.OpenBucket(ctx, client, c.S3.Bucket, &s3blob.Options{
		EncryptionType:             types.ServerSideEncryption(c.S3.ServerSideEncryption),
		KMSEncryptionID:            c.S3.KMSKeyID,
		RequestChecksumCalculation: options.RequestChecksumCalculation,
	})
	if err != nil {
		return nil, err
	}
	return newBucket(c, blobs, nil), nil
}

// s3Options adds what a store says to what the environment has said.
func s3Options(s *S3, o *s3.Options) {
	if s.Endpoint != "" {
		o.BaseEndpoint = &s.Endpoint
	}
	if o.BaseEndpoint != nil { // AWS_ENDPOINT_URL sets it too
		// Many servers that speak the protocol know neither the checksums that Amazon's library
		// adds since 2025, nor a bucket in the host name.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.UsePathStyle = true
		if o.Region == "" {
			o.Region = "us-east-1"
		}
	}
	if s.PathStyle != nil {
		o.UsePathStyle = *s.PathStyle
	}
	o.APIOptions = append(o.APIOptions, abortAfterCancel)
}

// abortAfterCancel lets the removal of the parts of an upload outlive the context that gave the
// upload up.
func abortAfterCancel(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("AbortAfterCancel", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		if _, isAbort := in.Parameters.(*s3.AbortMultipartUploadInput); isAbort {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
			defer cancel()
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

func s3Transport(caBundle string, d dial) (*awshttp.BuildableClient, error) {
	var roots *x509.CertPool // nil: those of the system
	if caBundle != "" {
		pem, err := os.ReadFile(caBundle)
		if err != nil {
			return nil, invalidCABundle(caBundle, err)
		}
		roots, err = x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, invalidCABundle(caBundle, errors.New("it holds no certificate in PEM form"))
		}
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext, t.ForceAttemptHTTP2 = d.watched, false
		if roots != nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		}
	}), nil
}

func invalidCABundle(file string, err error) error {
	return &StoreError{Reason: ReasonInvalidStore, Op: "use", Location: "caBundle " + file, Err: err}
}

// noCredentials tells credentials that are missing from those that AWS STS refuses.
func noCredentials(c Config, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("find credentials for %s: %w", c.location(), context.Canceled)
	}
	reason, detail := ofS3(err)
	if reason == "" || reason == ReasonNotFound {
		reason, detail = ReasonNoCredentials, "none are in the environment, in shared files, or of a workload identity"
	}
	return &StoreError{Reason: reason, Op: "open", Location: c.location(), Detail: detail, Advice: advice(c, reason), Err: err}
}
