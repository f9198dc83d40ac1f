package snapshot

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// fakeS3 speaks as much of S3 as shows what a real server cannot be made to do.
type fakeS3 struct {
	ignoresCondition bool
	// answer is what every request gets, with this error code in it.
	status int
	code   string
	// stored is called with each object that was stored, and may change it. False: the connection
	// breaks instead of an answer.
	stored func(o *fakeObject) bool
	// breaks is after how many bytes of an object the connection breaks that it is read from. 0:
	// never.
	breaks int
	// stalls is the name of the request (fakeRequest) that does not go on after so many bytes of an
	// object, in either direction, until the server ends.
	stalls string
	after  int
	ended  <-chan struct{}
	// expires is the name of the request from which on the credentials have expired.
	expires string

	mu       sync.Mutex
	expired  bool
	objects  map[string]*fakeObject // by path
	uploads  map[string]*fakeUpload // by ID
	requests []*http.Request
}

type fakeObject struct {
	content  []byte
	metadata http.Header
}

// start returns the store of the server. The environment holds credentials from then on.
func (f *fakeS3) start(t *testing.T) Config {
	t.Helper()
	f.objects, f.uploads = map[string]*fakeObject{}, map[string]*fakeUpload{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return Config{S3: &S3{Bucket: "bucket", Prefix: "p", Endpoint: server.URL}}
}

// fakeCredentials are in the environment until the end of the test.
func fakeCredentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := fakeRequest(r)
	if f.stallsAt(name) && r.Method != http.MethodGet {
		_, _ = io.CopyN(io.Discard, r.Body, int64(f.after)) // the client waits
		<-f.ended
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	o := f.objects[r.URL.Path]
	f.expired = f.expired || f.expires == name
	switch {
	case f.expired:
		f.refuse(w, r, http.StatusBadRequest, "ExpiredToken")
	case f.status != 0:
		f.refuse(w, r, f.status, f.code)
	case r.URL.Query().Has("uploads"), r.URL.Query().Has("uploadId"):
		f.multipart(w, r, content)
	case r.URL.Query().Has("list-type"):
		f.list(w, r.URL.Query())
	case r.Method == http.MethodPut && o != nil && r.Header.Get("If-None-Match") == "*" && !f.ignoresCondition:
		f.refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		o = &fakeObject{content: content, metadata: fakeMetadata(r)}
		f.objects[r.URL.Path] = o
		if f.stored != nil && !f.stored(o) {
			panic(http.ErrAbortHandler)
		}
	case o == nil:
		f.refuse(w, r, http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodDelete:
		delete(f.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		maps.Copy(w.Header(), o.metadata)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Length", fmt.Sprint(len(o.content)))
		if f.breaks > 0 {
			_, _ = w.Write(o.content[:f.breaks]) // the client notices
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		if f.stalls == name {
			_, _ = w.Write(o.content[:f.after]) // the client waits
			_ = http.NewResponseController(w).Flush()
			f.mu.Unlock()
			<-f.ended
			f.mu.Lock()
			return
		}
		_, _ = w.Write(o.content) // the client notices
	}
}

func (f *fakeS3) stallsAt(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stalls == name
}

// mend ends what was wrong with the server.
func (f *fakeS3) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalls, f.expires, f.expired = "", "", false
}

func (f *fakeS3) refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("X-Amz-Request-Id", fmt.Sprintf("REQUEST%d", len(f.requests)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead && code != "" {
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>The words of the store.</Message></Error>", code)
	}
}
