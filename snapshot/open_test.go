package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStore(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	type want struct {
		config   Config
		url      string
		location string // of the object "a"
	}
	cases := map[string]struct {
		reason string
		args   string
		want   want
	}{
		"Bucket": {
			reason: "A bucket alone is enough.",
			args:   "s3://bucket",
			want:   want{Config{S3: &S3{Bucket: "bucket"}}, "s3://bucket", "s3://bucket/a"},
		},
		"Slashes": {
			reason: "Slashes at the ends of a prefix make no difference.",
			args:   "s3://bucket//etcd/prod/",
			want:   want{Config{S3: &S3{Bucket: "bucket", Prefix: "etcd/prod"}}, "s3://bucket/etcd/prod", "s3://bucket/etcd/prod/a"},
		},
		"S3": {
			reason: "Each setting is in the query.",
			args: "s3://bucket/p?endpoint=https://store.example:9000&region=eu-central-1&pathStyle=false&serverSideEncryption=aws:kms" +
				"&kmsKeyID=alias/etcd&caBundle=/etc/ca.pem",
			want: want{
				Config{S3: &S3{
					Bucket: "bucket", Prefix: "p", Endpoint: "https://store.example:9000", Region: "eu-central-1", PathStyle: &no,
					ServerSideEncryption: "aws:kms", KMSKeyID: "alias/etcd", CABundle: "/etc/ca.pem",
				}},
				"s3://bucket/p?caBundle=%2Fetc%2Fca.pem&endpoint=https%3A%2F%2Fstore.example%3A9000&kmsKeyID=alias%2Fetcd&pathStyle=false" +
					"&region=eu-central-1&serverSideEncryption=aws%3Akms",
				"s3://bucket/p/a",
			},
		},
		"GCS": {
			reason: "Google's scheme is gs.",
			args:   "gs://bucket/p",
			want:   want{Config{GCS: &GCS{Bucket: "bucket", Prefix: "p"}}, "gs://bucket/p", "gs://bucket/p/a"},
		},
		"Azure": {
			reason: "The account comes first, then the container.",
			args:   "azblob://account/container/etcd/prod",
			want: want{
				Config{Azure: &Azure{Account: "account", Container: "container", Prefix: "etcd/prod"}},
				"azblob://account/container/etcd/prod", "azblob://account/container/etcd/prod/a",
			},
		},
		"File": {
			reason: "A URL of a directory has three slashes.",
			args:   "file:///var/backups/",
			want:   want{Config{Directory: &Directory{Path: "/var/backups"}}, "file:///var/backups", "file:///var/backups/a"},
		},
		"Space": {
			reason: "A URL escapes what it cannot hold.",
			args:   "file:///my%20backups",
			want:   want{Config{Directory: &Directory{Path: "/my backups"}}, "file:///my%20backups", "file:///my backups/a"},
		},
		"Path": {
			reason: "A path is a directory, and stays as it is.",
			args:   "./backups",
			want:   want{Config{Directory: &Directory{Path: "backups"}}, "backups", "file://backups/a"},
		},
		"JSON": {
			reason: "A JSON document is what an EtcdCluster holds.",
			args:   `{"s3": {"bucket": "bucket", "pathStyle": true}}`,
			want:   want{Config{S3: &S3{Bucket: "bucket", PathStyle: &yes}}, "s3://bucket?pathStyle=true", "s3://bucket/a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := ParseStore(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			got := want{config, config.URL(), newBucket(config, nil, nil).Location("a")}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if again, err := ParseStore(config.URL()); err != nil || !cmp.Equal(config, again) {
				t.Errorf("its URL %s is read as %v, %v", config.URL(), again, err)
			}
		})
	}
}

func TestParseStoreRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args string
		says string
	}{
		"Empty":            {"", "it is empty: write s3://BUCKET/PREFIX"},
		"OtherScheme":      {"gcs://bucket", `scheme "gcs" is none of a store: write s3://BUCKET/PREFIX, gs://`},
		"OneSlash":         {"s3:/bucket", "write s3://BUCKET/PREFIX"},
		"NoBucket":         {"s3:///prefix", `bucket "": write the name`},
		"BucketAndPort":    {"s3://bucket:9000", `bucket "bucket:9000": write the name`},
		"Password":         {"s3://key:secret@bucket", "credentials do not belong into the URL: set AWS_ACCESS_KEY_ID"},
		"UnknownSetting":   {"s3://bucket?pathstyle=true", `"pathstyle" is no setting of this store: its settings are endpoint, region, pathStyle`},
		"Twice":            {"s3://bucket?region=a&region=b", `"region" is set more than once`},
		"NotBool":          {"s3://bucket?pathStyle=maybe", "pathStyle=maybe: write true or false"},
		"Endpoint":         {"s3://bucket?endpoint=store.example:9000", "write a URL such as https://store.example:9000"},
		"EndpointPassword": {"s3://bucket?endpoint=https://key:hunter2@store.example", "write a URL without a user"},
		"Encryption":       {"s3://bucket?serverSideEncryption=AES", "write AES256, aws:kms or aws:kms:dsse"},
		"KeyWithout":       {"s3://bucket?kmsKeyID=a", "kmsKeyID is for serverSideEncryption aws:kms"},
		"PrefixUp":         {"s3://bucket/a/../b", `prefix "a/../b": write names with single slashes`},
		"NoContainer":      {"azblob://account", `container "": write the name`},
		"AccountHost":      {"azblob://account.blob.core.windows.net/container", "write the name of the storage account"},
		"TwoSlashes":       {"file://backups", "write file:///DIRECTORY with three slashes"},
		"DirectoryQuery":   {"file:///backups?a=b", `"a": the URL of a directory has no query`},
		"Fragment":         {"s3://bucket/a#b", "write it as %23"},
		"JSONUnknown":      {`{"s3": {"bucket": "b", "secretKey": "hunter2"}}`, `unknown field "secretKey"`},
		"JSONTwo":          {`{"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}`, "exactly one of s3, gcs, azure and directory, and 2 are set"},
		"JSONNone":         {`{}`, "exactly one of s3, gcs, azure and directory, and 0 are set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseStore(tc.args)
			wantReason(t, err, ReasonInvalidStore, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if err != nil && (strings.Contains(err.Error(), ":secret") || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}
