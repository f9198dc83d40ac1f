//go:build env

package snapshot

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

const (
	testBucket = "snapshots"
	accessKey  = "quorate"
	secretKey  = "correct-horse-battery"
)

// startS3 runs an S3 server over a directory, with one bucket. The environment holds its
// credentials from then on.
func startS3(t *testing.T, flags ...string) (endpoint string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	program, err := node.S3(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := storeAddress(t)
	args := append([]string{"--quiet", "--access=" + accessKey, "--secret=" + secretKey, "--port=" + address}, flags...)
	startStore(t, address, program, append(args, "posix", t.TempDir())...)
	return "http://" + address
}

// s3Client is a client of its own, to look at what the store does not show.
func s3Client(t *testing.T, c Config) *s3.Client {
	t.Helper()
	transport, err := s3Transport(c.S3.CABundle, (&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(transport))
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(loaded, func(o *s3.Options) { s3Options(c.S3, o) })
}

func makeS3Bucket(t *testing.T, c Config) {
	t.Helper()
	if _, err := s3Client(t, c).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &c.S3.Bucket}); err != nil {
		t.Fatal(err)
	}
}

// startGCS runs a server of the API of Google Cloud Storage that keeps its objects in a directory.
func startGCS(t *testing.T) (endpoint string) {
	t.Helper()
	program, err := node.GCS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := storeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	startStore(t, address, program, "-scheme=http", "-host="+host, "-port="+port, "-backend=filesystem", "-filesystem-root="+t.TempDir(),
		"-external-url=http://"+address, "-log-level=error")
	return "http://" + address
}

// lastStorePort is the last that was given away. They are below those that the system gives away by
// itself.
var lastStorePort atomic.Int32

func storeAddress(t *testing.T) string {
	t.Helper()
	const from, to = 32100, 32700
	for {
		port := from + int(lastStorePort.Add(1))
		if port > to {
			t.Fatalf("no port is free from %d to %d", from, to)
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err == nil {
			_ = l.Close() // nothing was sent
			return address
		}
	}
}

// startStore runs a server until the end of the test, and waits until it listens.
func startStore(t *testing.T, address, program string, args ...string) {
	t.Helper()
	var log strings.Builder // read after the process has ended
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := child.Start(cmd); err != nil {
		stop()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Logf("log of %s:\n%s", program, log.String())
		}
	})
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(time.Minute)
	for {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = connection.Close() // nothing was sent
			return
		}
		select {
		case <-again.C:
		case <-ended:
			t.Fatalf("%s ended before it listened", program)
		case <-late:
			t.Fatalf("%s does not listen: %v", program, err)
		}
	}
}
