package snapshot

import (
	"encoding/json"
	"fmt"
	neturl "net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ParseStore reads a store from a URL, a path, or a JSON document (as in an EtcdCluster):
//
//	s3://bucket/prefix?endpoint=https://store.example&region=eu-central-1
//	gs://bucket/prefix
//	azblob://account/container/prefix
//	file:///directory                  or /directory, or directory
//
// gs and azblob take endpoint as well; s3 also pathStyle, serverSideEncryption, kmsKeyID and
// caBundle.
func ParseStore(store string) (Config, error) {
	c, err := parseStore(store)
	if err != nil {
		return Config{}, &StoreError{Reason: ReasonInvalidStore, Op: "use", Location: withoutSecrets(store), Err: err}
	}
	return c, c.Validate()
}

func parseStore(store string) (Config, error) {
	if strings.HasPrefix(store, "{") {
		var c Config
		d := json.NewDecoder(strings.NewReader(store))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return Config{}, fmt.Errorf("read the JSON document of a store: %w", err)
		}
		return c, nil
	}
	scheme, rest, isURL := strings.Cut(store, ":")
	if !isURL || strings.Contains(scheme, "/") || strings.HasPrefix(scheme, ".") {
		if store == "" {
			return Config{}, fmt.Errorf("it is empty: %s", storeForms)
		}
		return Config{Directory: &Directory{Path: filepath.Clean(store)}}, nil
	}
	u, err := neturl.Parse(store)
	if err != nil || !strings.HasPrefix(rest, "//") {
		return Config{}, fmt.Errorf("%s", storeForms)
	}
	if u.User != nil {
		return Config{}, fmt.Errorf("credentials do not belong into the URL: %s", credentialsAdvice[scheme])
	}
	if u.Fragment != "" {
		return Config{}, fmt.Errorf("a # begins no part of the URL of a store: write it as %%23")
	}
	return fromURL(u)
}

const storeForms = "write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, azblob://ACCOUNT/CONTAINER/PREFIX, file:///DIRECTORY or the path of a directory"

func fromURL(u *neturl.URL) (Config, error) {
	query := u.Query()
	prefix := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "s3":
		if err := checkQuery(query, "endpoint", "region", "pathStyle", "serverSideEncryption", "kmsKeyID", "caBundle"); err != nil {
			return Config{}, err
		}
		s := &S3{
			Bucket: u.Host, Prefix: prefix, Endpoint: query.Get("endpoint"), Region: query.Get("region"),
			ServerSideEncryption: query.Get("serverSideEncryption"), KMSKeyID: query.Get("kmsKeyID"), CABundle: query.Get("caBundle"),
		}
		if query.Has("pathStyle") {
			value, err := strconv.ParseBool(query.Get("pathStyle"))
			if err != nil {
				return Config{}, fmt.Errorf("pathStyle=%s: write true or false", query.Get("pathStyle"))
			}
			s.PathStyle = &value
		}
		return Config{S3: s}, nil
	case "gs":
		return Config{GCS: &GCS{Bucket: u.Host, Prefix: prefix, Endpoint: query.Get("endpoint")}}, checkQuery(query, "endpoint")
	case "azblob":
		container, prefix, _ := strings.Cut(prefix, "/")
		a := &Azure{Account: u.Host, Container: container, Prefix: strings.Trim(prefix, "/"), Endpoint: query.Get("endpoint")}
		return Config{Azure: a}, checkQuery(query, "endpoint")
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return Config{}, fmt.Errorf("write file:///DIRECTORY with three slashes, or the path of a directory")
		}
		return Config{Directory: &Directory{Path: filepath.Clean("/" + u.Path)}}, checkQuery(query)
	}
	return Config{}, fmt.Errorf("scheme %q is none of a store: %s", u.Scheme, storeForms)
}

// checkQuery is the error of a query that says more than these words, or one of them twice.
func checkQuery(query neturl.Values, words ...string) error {
	for word, values := range query {
		switch {
		case !slices.Contains(words, word) && len(words) == 0:
			return fmt.Errorf("%q: the URL of a directory has no query", word)
		case !slices.Contains(words, word):
			return fmt.Errorf("%q is no setting of this store: its settings are %s", word, strings.Join(words, ", "))
		case len(values) > 1:
			return fmt.Errorf("%q is set more than once", word)
		}
	}
	return nil
}

// withoutSecrets is a URL for a message: without what may be a password.
func withoutSecrets(store string) string {
	if u, err := neturl.Parse(store); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	if store == "" || strings.HasPrefix(store, "{") || strings.Contains(store, "@") {
		return "the store"
	}
	return store
}

// URL is the store as ParseStore reads it.
func (c Config) URL() string {
	query := neturl.Values{}
	add := func(word, value string) {
		if value != "" {
			query.Set(word, value)
		}
	}
	add("endpoint", c.parts().endpoint)
	u := neturl.URL{}
	prefix := strings.Trim(c.parts().prefix, "/")
	switch {
	case c.S3 != nil:
		u = neturl.URL{Scheme: "s3", Host: c.S3.Bucket, Path: "/" + prefix}
		add("region", c.S3.Region)
		add("serverSideEncryption", c.S3.ServerSideEncryption)
		add("kmsKeyID", c.S3.KMSKeyID)
		add("caBundle", c.S3.CABundle)
		if c.S3.PathStyle != nil {
			add("pathStyle", strconv.FormatBool(*c.S3.PathStyle))
		}
	case c.GCS != nil:
		u = neturl.URL{Scheme: "gs", Host: c.GCS.Bucket, Path: "/" + prefix}
	case c.Azure != nil:
		u = neturl.URL{Scheme: "azblob", Host: c.Azure.Account, Path: "/" + c.Azure.Container + "/" + prefix}
	case c.Directory != nil:
		if !filepath.IsAbs(c.Directory.Path) {
			return filepath.Clean(c.Directory.Path)
		}
		u = neturl.URL{Scheme: "file", Path: filepath.Clean(c.Directory.Path)}
	}
	if u.Scheme != "file" {
		u.Path = strings.TrimSuffix(u.Path, "/")
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// String is the URL of the store.
func (c Config) String() string { return c.URL() }
