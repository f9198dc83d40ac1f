package snapshot

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
)

// fakeUpload is an object in parts that is not complete.
type fakeUpload struct {
	metadata http.Header
	parts    map[int][]byte
}

// fakeRequest is the name of a request.
func fakeRequest(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("uploads"):
		return "CreateMultipartUpload"
	case q.Has("partNumber"):
		return "UploadPart " + q.Get("partNumber")
	case q.Has("uploadId") && r.Method == http.MethodPost:
		return "CompleteMultipartUpload"
	case q.Has("uploadId"):
		return "AbortMultipartUpload"
	case q.Has("list-type"):
		return "ListObjectsV2"
	}
	return r.Method + " " + strings.TrimPrefix(r.URL.Path, "/bucket/p/")
}

// multipart answers a request of an object in parts.
func (f *fakeS3) multipart(w http.ResponseWriter, r *http.Request, content []byte) {
	id := r.URL.Query().Get("uploadId")
	u := f.uploads[id]
	switch {
	case r.URL.Query().Has("uploads"):
		id = fmt.Sprint(len(f.requests))
		f.uploads[id] = &fakeUpload{metadata: fakeMetadata(r), parts: map[int][]byte{}}
		_, _ = fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case u == nil:
		f.refuse(w, r, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber")) // the client counts
		u.parts[n] = content
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
	case r.Method == http.MethodDelete:
		delete(f.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case f.objects[r.URL.Path] != nil && r.Header.Get("If-None-Match") == "*":
		f.refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		o := &fakeObject{metadata: u.metadata}
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			o.content = append(o.content, u.parts[n]...)
		}
		f.objects[r.URL.Path] = o
		delete(f.uploads, id)
		_, _ = fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"all"</ETag></CompleteMultipartUploadResult>`)
	}
}

func fakeMetadata(r *http.Request) http.Header {
	metadata := http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			metadata[name] = values
		}
	}
	return metadata
}

func (f *fakeS3) list(w http.ResponseWriter, query neturl.Values) {
	var b bytes.Buffer
	b.WriteString("<ListBucketResult>")
	for _, path := range slices.Sorted(maps.Keys(f.objects)) {
		if key := strings.TrimPrefix(path, "/bucket/"); strings.HasPrefix(key, query.Get("prefix")) {
			_, _ = fmt.Fprintf(&b, "<Contents><Key>%s</Key><Size>%d</Size><LastModified>2006-01-02T15:04:05Z</LastModified></Contents>", key, len(f.objects[path].content))
		}
	}
	b.WriteString("</ListBucketResult>")
	_, _ = b.WriteTo(w) // the client notices
}
