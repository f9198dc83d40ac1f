//go:build env

package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
)

// ofTest is the store with a prefix of this test alone.
func ofTest(t *testing.T, c Config) Config {
	prefix := strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-") + "/deep"
	if c.S3 != nil {
		s := *c.S3
		s.Prefix = prefix
		return Config{S3: &s}
	}
	g := *c.GCS
	g.Prefix = prefix
	return Config{GCS: &g}
}

func openTestStore(t *testing.T, c Config) Store {
	t.Helper()
	s, err := OpenStore(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	c := Config{S3: &S3{Bucket: testBucket, Endpoint: startS3(t)}}
	makeS3Bucket(t, c)
	t.Run("Rows", func(t *testing.T) {
		testStore(t, func(t *testing.T) Store { return openTestStore(t, ofTest(t, c)) })
	})
	wantNoUploads(t, c)
}

// wantNoUploads checks that no parts of an upload that was given up take space.
func wantNoUploads(t *testing.T, c Config) {
	t.Helper()
	uploads, err := s3Client(t, c).ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &c.S3.Bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, upload := range uploads.Uploads {
		t.Errorf("an upload is left of %s", *upload.Key)
	}
}

// TestS3TLS is a store with a certificate authority of its own.
func TestS3TLS(t *testing.T) {
	authority, cert, key := testCertificate(t)
	endpoint := strings.Replace(startS3(t, "--cert="+cert, "--key="+key), "http:", "https:", 1)
	c := Config{S3: &S3{Bucket: testBucket, Endpoint: endpoint, CABundle: authority}}
	makeS3Bucket(t, c)
	s := openTestStore(t, c)
	create(t, s, "a", []byte("over TLS"))
	wantObjects(t, s, map[string]string{"a": "over TLS"})

	c.S3.CABundle = ""
	_, err := openTestStore(t, c).Open(t.Context(), "a")
	wantReason(t, err, ReasonUntrustedCertificate, nil)
}

// TestS3Large streams an object that is larger than the memory that is allowed for it.
func TestS3Large(t *testing.T) {
	c := Config{S3: &S3{Bucket: testBucket, Endpoint: startS3(t)}}
	makeS3Bucket(t, c)
	largeStream(t, openTestStore(t, c))
}

// largeStream writes and reads 200 MiB, and compares what the heap takes with the bound of the
// agent.
func largeStream(t *testing.T, s Store) {
	t.Helper()
	const size, bound = 200 << 20, 128 << 20
	peak := uint64(0)
	sample := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse+m.StackInuse)
	}
	runtime.GC()
	want := sha256.New()
	err := s.Create(t.Context(), "large", func(w io.Writer) error {
		random := rand.NewChaCha8([32]byte{})
		for range size >> 20 {
			if _, err := io.CopyN(io.MultiWriter(w, want), random, 1<<20); err != nil {
				return err
			}
			sample()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sample()
	t.Logf("writing: at most %d MiB", peak>>20)
	r, err := s.Open(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := sha256.New()
	for {
		_, err := io.CopyN(got, r, 1<<20)
		sample()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		t.Error("another content was read than was written")
	}
	t.Logf("and reading: at most %d MiB", peak>>20)
	if peak > bound {
		t.Errorf("the heap took %d MiB, more than %d MiB", peak>>20, bound>>20)
	}
}

// TestS3Refused shows what is said of each thing that is wrong with a store.
func TestS3Refused(t *testing.T) {
	endpoint := startS3(t)
	makeS3Bucket(t, Config{S3: &S3{Bucket: testBucket, Endpoint: endpoint}})
	silent := "http://" + storeAddress(t)
	cases := map[string]struct {
		reason string
		store  S3
		env    map[string]string
		want   Reason
		says   string
	}{
		"NoBucket": {
			reason: "A bucket that is not there is not created.",
			store:  S3{Bucket: "missing", Endpoint: endpoint},
			want:   ReasonNoSuchBucket, says: "create it, or correct its name",
		},
		"UnknownKey": {
			reason: "The store does not know the access key.",
			store:  S3{Bucket: testBucket, Endpoint: endpoint},
			env:    map[string]string{"AWS_ACCESS_KEY_ID": "unknown"},
			want:   ReasonInvalidCredentials, says: "AWS_SECRET_ACCESS_KEY",
		},
		"WrongSecret": {
			reason: "The secret key is not that of the access key.",
			store:  S3{Bucket: testBucket, Endpoint: endpoint},
			env:    map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"},
			want:   ReasonInvalidCredentials, says: "AWS_SECRET_ACCESS_KEY",
		},
		"WrongRegion": {
			reason: "The store signs for another region.",
			store:  S3{Bucket: testBucket, Endpoint: endpoint, Region: "eu-central-1"},
			want:   ReasonWrongRegion, says: "set region",
		},
		"NoServer": {
			reason: "Nothing listens at the endpoint.",
			store:  S3{Bucket: testBucket, Endpoint: silent},
			want:   ReasonUnreachable, says: "connection refused; check the endpoint",
		},
		"UnknownHost": {
			reason: "The endpoint has a name that does not exist.",
			store:  S3{Bucket: testBucket, Endpoint: "http://store.invalid"},
			want:   ReasonUnreachable, says: "the name store.invalid was not resolved",
		},
		"NoTLS": {
			reason: "The endpoint is said to speak TLS, and does not.",
			store:  S3{Bucket: testBucket, Endpoint: strings.Replace(endpoint, "http:", "https:", 1)},
			want:   ReasonUnreachable, says: "does not speak TLS",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for word, value := range tc.env {
				t.Setenv(word, value)
			}
			// A failure must not take minutes.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := OpenStore(ctx, Config{S3: &tc.store})
			if err != nil {
				t.Fatal(err)
			}
			check := func(method string, err error) {
				t.Helper()
				failed, ok := errors.AsType[*StoreError](err)
				if !ok || failed.Reason != tc.want || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "s3://"+tc.store.Bucket) {
					t.Errorf("%s: got %v, want %s and %q: %s", method, err, tc.want, tc.says, tc.reason)
				}
			}
			if tc.want != ReasonUnreachable { // each method tries for seconds
				_, err = s.Open(ctx, "a")
				check("open", err)
				check("list", s.List(ctx, "", func(Object) error { return nil }))
			}
			check("create", s.Create(ctx, "a", func(w io.Writer) error {
				_, err := w.Write([]byte("content"))
				return err
			}))
		})
	}
}

// TestS3Prefix is a prefix as people write it: with slashes at either end or without, it is the
// same place.
func TestS3Prefix(t *testing.T) {
	c := Config{S3: &S3{Bucket: testBucket, Endpoint: startS3(t)}}
	makeS3Bucket(t, c)
	for _, prefix := range []string{"", "/", "etcd", "etcd/", "/etcd/", "/etcd/prod", "etcd/prod/"} {
		c.S3.Prefix = prefix
		s := openTestStore(t, c)
		key := "of-" + strings.ReplaceAll(strings.Trim(prefix, "/"), "/", "-")
		if !strings.HasSuffix(prefix, "/") || prefix == "/" {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			create(t, s, key, nil)
		}
		want := filepath.ToSlash(filepath.Join("snapshots", prefix, key))
		if diff := cmp.Diff("s3://"+want, s.Location(key)); diff != "" {
			t.Errorf("location: -want +got:\n%s", diff)
		}
		if got := list(t, s, "of-"); !cmp.Equal(got, []string{key}) {
			t.Errorf("prefix %q: got %v, want %s alone", prefix, got, key)
		}
	}
}
