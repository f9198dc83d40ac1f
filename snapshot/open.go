package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	neturl "net/url"
	"path/filepath"
	"strings"
)

// Config says where snapshots are stored. It never holds a secret. Exactly one of its members is
// set.
//
// Credentials come from each cloud's own chain: environment variables, shared files, workload
// identity. In Kubernetes they are those of the Job that opens the store, from its ServiceAccount
// or from a Secret as environment variables.
type Config struct {
	S3        *S3        `json:"s3,omitempty"`
	GCS       *GCS       `json:"gcs,omitempty"`
	Azure     *Azure     `json:"azure,omitempty"`
	Directory *Directory `json:"directory,omitempty"`
}

// S3 is a bucket of Amazon S3, or of a store that speaks its protocol.
type S3 struct {
	Bucket string `json:"bucket"`
	// Prefix is where in the bucket the objects are: "etcd/prod". Slashes at its ends make no
	// difference.
	Prefix string `json:"prefix,omitempty"`
	// Endpoint is the URL of a store other than Amazon's, such as https://minio.example:9000.
	Endpoint string `json:"endpoint,omitempty"`
	// Region defaults to that of the environment (AWS_REGION), and to us-east-1 with an endpoint.
	Region string `json:"region,omitempty"`
	// PathStyle puts the bucket into the path instead of the host name. It defaults to true with an
	// endpoint, else to false.
	PathStyle *bool `json:"pathStyle,omitempty"`
	// ServerSideEncryption is AES256, aws:kms or aws:kms:dsse, KMSKeyID the key for the latter two.
	// Empty: as the bucket says.
	ServerSideEncryption string `json:"serverSideEncryption,omitempty"`
	KMSKeyID             string `json:"kmsKeyID,omitempty"`
	// CABundle is a PEM file of certificate authorities that are trusted beside those of the
	// system.
	CABundle string `json:"caBundle,omitempty"`
}

// GCS is a bucket of Google Cloud Storage.
type GCS struct {
	Bucket string `json:"bucket"`
	Prefix string `json:"prefix,omitempty"`
	// Endpoint is the URL of a server other than Google's, such as a private one or one for tests.
	// Where there are no credentials, it is asked without.
	Endpoint string `json:"endpoint,omitempty"`
}

// Azure is a container of Azure Blob Storage.
type Azure struct {
	// Account is the name of the storage account.
	Account   string `json:"account"`
	Container string `json:"container"`
	Prefix    string `json:"prefix,omitempty"`
	// Endpoint is the URL of the account, and defaults to https://ACCOUNT.blob.core.windows.net.
	Endpoint string `json:"endpoint,omitempty"`
}

// Directory is a directory that exists, such as where a volume is mounted.
type Directory struct {
	Path string `json:"path"`
}

// OpenStore opens a store. It finds the credentials, but does not ask the store for anything:
// whether the bucket is there shows with the first object. A directory must be there.
func OpenStore(ctx context.Context, c Config) (Store, error) {
	return openStore(ctx, c, (&net.Dialer{Timeout: dialTimeout}).DialContext)
}

func openStore(ctx context.Context, c Config, d dial) (Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var s Store
	var err error
	switch {
	case c.S3 != nil:
		s, err = openS3(ctx, c, d)
	case c.GCS != nil:
		s, err = openGCS(ctx, c, d)
	case c.Azure != nil:
		s, err = openAzure(ctx, c, d)
	default:
		s, err = openDirectory(c)
	}
	if err != nil {
		return nil, storeError(c, "open", c.location(), err)
	}
	return s, nil
}

// Validate tells what is wrong with a store, and what to write instead.
func (c Config) Validate() error {
	invalid := func(format string, args ...any) error {
		return &StoreError{
			Reason: ReasonInvalidStore, Op: "use", Location: c.location(), Err: fmt.Errorf(format, args...),
		}
	}
	set := 0
	for _, is := range []bool{c.S3 != nil, c.GCS != nil, c.Azure != nil, c.Directory != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return invalid("a store is exactly one of s3, gcs, azure and directory, and %d are set", set)
	}
	if c.Directory != nil {
		if c.Directory.Path == "" {
			return invalid("the path is empty: write that of a directory")
		}
		return nil
	}
	parts := c.parts()
	if parts.bucket == "" || strings.ContainsAny(parts.bucket, "/?#@: ") {
		return invalid("%s %q: write the name of one that exists, and what comes below it as the prefix", parts.bucketIs, parts.bucket)
	}
	if a := c.Azure; a != nil && (a.Account == "" || strings.ContainsAny(a.Account, "/.?#@: ")) {
		return invalid("account %q: write the name of the storage account", a.Account)
	}
	if p := strings.Trim(parts.prefix, "/"); p != "" && !validKey(p) {
		return invalid("prefix %q: write names with single slashes between them, none of which begins with a dot", parts.prefix)
	}
	if err := validEndpoint(parts.endpoint); err != nil {
		return invalid("%w", err)
	}
	if err := validEncryption(c.S3); err != nil {
		return invalid("%w", err)
	}
	return nil
}

func validEncryption(s *S3) error {
	if s == nil {
		return nil
	}
	switch s.ServerSideEncryption {
	case "", "AES256", "aws:kms", "aws:kms:dsse":
	default:
		return fmt.Errorf("serverSideEncryption %q: write AES256, aws:kms or aws:kms:dsse", s.ServerSideEncryption)
	}
	if s.KMSKeyID != "" && !strings.HasPrefix(s.ServerSideEncryption, "aws:kms") {
		return errors.New("kmsKeyID is for serverSideEncryption aws:kms and aws:kms:dsse: set one of them, or remove kmsKeyID")
	}
	return nil
}

func validEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := neturl.Parse(endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("endpoint %q: write a URL such as https://store.example:9000", endpoint)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New("endpoint: write a URL without a user, a query or a fragment, such as https://store.example:9000")
	}
	return nil
}

// parts are what the stores that are no directory have in common.
type parts struct{ bucketIs, bucket, prefix, endpoint string }

func (c Config) parts() parts {
	switch {
	case c.S3 != nil:
		return parts{"bucket", c.S3.Bucket, c.S3.Prefix, c.S3.Endpoint}
	case c.GCS != nil:
		return parts{"bucket", c.GCS.Bucket, c.GCS.Prefix, c.GCS.Endpoint}
	case c.Azure != nil:
		return parts{"container", c.Azure.Container, c.Azure.Prefix, c.Azure.Endpoint}
	}
	return parts{}
}

// keyPrefix is what the key of each object begins with in its bucket: empty, or with a slash at the
// end.
func (c Config) keyPrefix() string {
	if p := strings.Trim(c.parts().prefix, "/"); p != "" {
		return p + "/"
	}
	return ""
}

// location is what a person calls the place of the objects: "s3://bucket/prefix/".
func (c Config) location() string {
	switch {
	case c.S3 != nil:
		return "s3://" + c.S3.Bucket + "/" + c.keyPrefix()
	case c.GCS != nil:
		return "gs://" + c.GCS.Bucket + "/" + c.keyPrefix()
	case c.Azure != nil:
		return "azblob://" + c.Azure.Account + "/" + c.Azure.Container + "/" + c.keyPrefix()
	case c.Directory != nil:
		return "file://" + strings.TrimSuffix(filepath.Clean(c.Directory.Path), "/") + "/"
	}
	return "the store"
}

// validKey tells whether a key names an object in each kind of store: names with single slashes
// between them, none of which begins with a dot. So "..", absolute paths and the files of
// unfinished writes have no key.
func validKey(key string) bool {
	if key == "." || !fs.ValidPath(key) || strings.ContainsAny(key, "\\\x7f") {
		return false
	}
	for name := range strings.SplitSeq(key, "/") {
		if strings.HasPrefix(name, ".") {
			return false
		}
	}
	return strings.IndexFunc(key, func(r rune) bool { return r < ' ' }) < 0
}

// checkKey is the error of a key that is none.
func checkKey(c Config, op, key string) error {
	if validKey(key) {
		return nil
	}
	return &StoreError{
		Reason: ReasonInvalidKey, Op: op, Location: c.location(),
		Err: fmt.Errorf("key %q: write names with single slashes between them, none of which begins with a dot", key),
	}
}
