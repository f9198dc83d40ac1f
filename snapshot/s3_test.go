package snapshot

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openFake(t *testing.T, c Config) Store {
	t.Helper()
	s, err := OpenStore(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestS3Answers shows what becomes of the answers of a store: the reason, and what to do. Nothing
// in it differs from time to time.
func TestS3Answers(t *testing.T) {
	fakeCredentials(t)
	cases := map[string]struct {
		reason string
		status int
		code   string
		want   Reason
		says   string
	}{
		"Denied": {
			reason: "The advice names each permission.",
			status: 403, code: "AccessDenied", want: ReasonAccessDenied, says: "s3:PutObject",
		},
		"Wordless": {
			reason: "A proxy answers without a code.",
			status: 403, want: ReasonAccessDenied, says: "s3:ListBucket",
		},
		"Expired": {
			reason: "Temporary credentials end.",
			status: 400, code: "ExpiredToken", want: ReasonCredentialsExpired, says: "renew the credentials",
		},
		"Skew": {
			reason: "Requests are signed with the time.",
			status: 403, code: "RequestTimeTooSkewed", want: ReasonClockSkew, says: "set the clock",
		},
		"Region": {
			reason: "The bucket is in another region.",
			status: 301, code: "PermanentRedirect", want: ReasonWrongRegion, says: "set region",
		},
		"Full": {
			reason: "MinIO's disk is full.",
			status: 507, code: "XMinioStorageFull", want: ReasonStoreFull, says: "delete old snapshots",
		},
		"FullWordless": {
			reason: "A status says it, where the store has an unknown word for it.",
			status: 507, code: "OutOfSpace", want: ReasonStoreFull, says: "OutOfSpace: The words of the store",
		},
		"Busy": {
			reason: "The store stays busy through all attempts.",
			status: 503, code: "SlowDown", want: ReasonBusy, says: "try again later",
		},
		"Key": {
			reason: "The KMS key is disabled.",
			status: 400, code: "KMS.DisabledException", want: ReasonEncryptionKey, says: "kms:GenerateDataKey",
		},
		"Condition": {
			reason: "A store that has no conditional writes says so.",
			status: 501, code: "NotImplemented", want: ReasonUnsupported, says: "could be overwritten",
		},
		"Unknown": {
			reason: "What is not known is told in the words of the store.",
			status: 418, code: "Teapot", want: ReasonStoreFailed, says: "Teapot: The words of the store",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFake(t, (&fakeS3{status: tc.status, code: tc.code}).start(t))
			var texts []string
			for range 2 {
				_, err := s.Open(t.Context(), "a")
				wantReason(t, err, tc.want, nil)
				if !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "open s3://bucket/p/a: ") {
					t.Errorf("got %v, want %q: %s", err, tc.says, tc.reason)
				}
				texts = append(texts, err.Error())
			}
			if texts[0] != texts[1] {
				t.Errorf("the same failure has two texts: %q", texts)
			}
			err := s.Create(t.Context(), "a", func(w io.Writer) error {
				_, err := w.Write([]byte("content"))
				return err
			})
			wantReason(t, err, tc.want, nil)
		})
	}
}

// TestS3Request looks at what is sent.
func TestS3Request(t *testing.T) {
	fakeCredentials(t)
	f := &fakeS3{}
	c := f.start(t)
	c.S3.ServerSideEncryption, c.S3.KMSKeyID = "aws:kms", "alias/etcd"
	create(t, openFake(t, c), "a", []byte("content"))
	type request struct{ Path, Condition, Encryption, Key, Checksum string }
	var got []request
	for _, r := range f.requests {
		if r.Method == http.MethodPut {
			h := r.Header
			got = append(got, request{
				r.URL.Path, h.Get("If-None-Match"), h.Get("X-Amz-Server-Side-Encryption"), h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"),
				h.Get("X-Amz-Checksum-Crc32") + h.Get("X-Amz-Trailer") + h.Get("X-Amz-Sdk-Checksum-Algorithm"),
			})
		}
	}
	if diff := cmp.Diff([]request{{"/bucket/p/a", "*", "aws:kms", "alias/etcd", ""}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestS3Overwritten are stores that do not do, or do not tell, what was asked of them.
func TestS3Overwritten(t *testing.T) {
	fakeCredentials(t)
	writes := 0
	cases := map[string]struct {
		reason string
		fake   *fakeS3
		before string // the content of the object before
		want   error
		stays  string
	}{
		"ConditionIgnored": {
			reason: "A store that ignores the condition is asked before.",
			fake:   &fakeS3{ignoresCondition: true},
			before: "first", want: ErrExists, stays: "first",
		},
		"OverwrittenMeanwhile": {
			reason: "A store that ignores the condition is asked afterwards as well.",
			fake: &fakeS3{ignoresCondition: true, stored: func(o *fakeObject) bool {
				o.content, o.metadata = []byte("of another"), http.Header{"X-Amz-Meta-Quorate-Create": {"another"}}
				return true
			}},
			want: ErrExists, stays: "of another",
		},
		"AnswerLost": {
			reason: "The object is stored, the answer is lost, and the next attempt finds the object: it is known as our own.",
			fake: &fakeS3{stored: func(*fakeObject) bool {
				writes++
				return writes > 1
			}},
			stays: "content",
		},
		"NoMetadata": {
			reason: "A store that keeps no metadata is believed.",
			fake: &fakeS3{stored: func(o *fakeObject) bool {
				o.metadata = nil
				return true
			}},
			stays: "content",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tc.fake.start(t)
			if tc.before != "" {
				tc.fake.objects["/bucket/p/a"] = &fakeObject{content: []byte(tc.before)}
			}
			s := openFake(t, c)
			err := s.Create(t.Context(), "a", func(w io.Writer) error {
				_, err := w.Write([]byte("content"))
				return err
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v: %s", err, tc.want, tc.reason)
			}
			if diff := cmp.Diff(tc.stays, string(read(t, s, "a"))); diff != "" {
				t.Errorf("content: -want +got:\n%s", diff)
			}
		})
	}
}

// TestS3ReadBreaks reads an object from a connection that breaks.
func TestS3ReadBreaks(t *testing.T) {
	fakeCredentials(t)
	f := &fakeS3{breaks: 100}
	c := f.start(t)
	f.objects["/bucket/p/a"] = &fakeObject{content: make([]byte, 1<<20)}
	r, err := openFake(t, c).Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	wantReason(t, err, ReasonUnreachable, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "read s3://bucket/p/a: Unreachable: the connection ended too early; ") {
		t.Errorf("got %v", err)
	}
}

func TestS3Open(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, word := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(word, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	cases := map[string]struct {
		reason string
		store  S3
		want   Reason
		says   string
	}{
		"NoCredentials": {
			reason: "Credentials are looked for at once, not after a snapshot has begun.",
			store:  S3{Bucket: "bucket", Region: "eu-central-1"},
			want:   ReasonNoCredentials, says: "set AWS_ACCESS_KEY_ID",
		},
		"NoRegion": {
			reason: "Amazon's bucket has a region.",
			store:  S3{Bucket: "bucket"},
			want:   ReasonWrongRegion, says: "set region",
		},
		"NoCABundle": {
			reason: "A bundle that is not there is an error of the store's configuration.",
			store:  S3{Bucket: "bucket", CABundle: "/none/ca.pem"},
			want:   ReasonInvalidStore, says: "caBundle /none/ca.pem",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := OpenStore(t.Context(), Config{S3: &tc.store})
			wantReason(t, err, tc.want, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q: %s", err, tc.says, tc.reason)
			}
		})
	}
}
