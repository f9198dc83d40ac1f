package snapshot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// Reason is one CamelCase word for what the failure of a store means.
type Reason string

// The reasons of a StoreError.
const (
	ReasonInvalidStore         Reason = "InvalidStore"         // its configuration
	ReasonInvalidKey           Reason = "InvalidKey"           // the name of an object
	ReasonNotFound             Reason = "NotFound"             // the object; wraps ErrNotFound
	ReasonAlreadyExists        Reason = "AlreadyExists"        // the object; wraps ErrExists
	ReasonNoSuchBucket         Reason = "NoSuchBucket"         // or container, or directory
	ReasonNoCredentials        Reason = "NoCredentials"        // none were found
	ReasonInvalidCredentials   Reason = "InvalidCredentials"   // the store does not know them
	ReasonCredentialsExpired   Reason = "CredentialsExpired"   // they were good once
	ReasonAccessDenied         Reason = "AccessDenied"         // they are good, but may not do this
	ReasonWrongRegion          Reason = "WrongRegion"          // of an S3 bucket
	ReasonClockSkew            Reason = "ClockSkew"            // the clock here, or that of the store
	ReasonUnreachable          Reason = "Unreachable"          // no connection, or one that breaks
	ReasonUntrustedCertificate Reason = "UntrustedCertificate" // of the store's TLS
	ReasonStoreFull            Reason = "StoreFull"            // no space, or the quota is reached
	ReasonReadOnly             Reason = "ReadOnly"             // a directory that cannot be written
	ReasonBusy                 Reason = "Busy"                 // the store asks to come back later, or fails for a moment
	ReasonEncryptionKey        Reason = "EncryptionKey"        // the KMS key cannot be used
	ReasonUnsupported          Reason = "Unsupported"          // the store lacks something, such as conditional writes
	ReasonStoreFailed          Reason = "StoreFailed"          // anything else
)

// StoreError is the failure of a store. Its text says what failed, why, and what to do about it. It
// has no request IDs, times, ports or queries of URLs in it, so the same failure has the same text
// each time; errors.As finds the store's own error with all of them.
type StoreError struct {
	Reason   Reason
	Op       string // open, create, read, list, delete
	Location string // as Store.Location
	Detail   string // what the store said, in short; Err in full when empty
	Advice   string // what to do, as a sentence without a full stop; it may be empty
	Err      error
}

// urlQuery is a URL with its query, which may hold a signature (Azure's SAS): a message goes into
// logs and into the status.
var urlQuery = regexp.MustCompile(`(https?://[^\s"'?]+)\?[^\s"']*`)

func (e *StoreError) Error() string {
	detail := e.Detail
	if detail == "" && e.Err != nil {
		detail = e.Err.Error()
	}
	detail = urlQuery.ReplaceAllString(detail, "$1")
	text := fmt.Sprintf("%s %s: %s", e.Op, e.Location, e.Reason)
	if e.Reason == ReasonInvalidStore || e.Reason == ReasonInvalidKey {
		text = fmt.Sprintf("%s %s", e.Op, e.Location)
	}
	if detail != "" {
		text += ": " + detail
	}
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap gives the store's own error, and ErrNotFound or ErrExists where that is the reason.
func (e *StoreError) Unwrap() []error {
	var errs []error
	switch e.Reason {
	case ReasonNotFound:
		errs = append(errs, ErrNotFound)
	case ReasonAlreadyExists:
		errs = append(errs, ErrExists)
	default:
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// storeError says what the failure of a store means. The end of the caller's context is no failure
// of the store.
func storeError(c Config, op, location string, err error) error {
	if _, done := errors.AsType[*StoreError](err); done {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s %s: %w", op, location, context.Canceled)
	}
	reason, detail := diagnose(err)
	if reason == ReasonNotFound && c.Directory == nil && op != "open" && op != "read" && op != "delete" {
		reason = ReasonNoSuchBucket // to create and to list, no object need be there
	}
	return &StoreError{Reason: reason, Op: op, Location: location, Detail: detail, Advice: advice(c, reason), Err: err}
}

// advice is what to do about a reason.
func advice(c Config, reason Reason) string {
	switch reason {
	case ReasonNotFound, ReasonAlreadyExists, ReasonInvalidStore, ReasonInvalidKey, ReasonStoreFailed:
		return ""
	case ReasonNoSuchBucket:
		if c.Directory != nil {
			return "create the directory, or mount the volume there: it is not created, so that nothing is stored beside the volume"
		}
		return "create it, or correct its name; nothing here creates it"
	case ReasonNoCredentials, ReasonInvalidCredentials:
		return credentialsAdvice[c.scheme()]
	case ReasonCredentialsExpired:
		return "renew the credentials; those of a workload identity are renewed by themselves"
	case ReasonAccessDenied:
		return permissionAdvice[c.scheme()]
	case ReasonWrongRegion:
		return "set region to the one that the bucket is in"
	case ReasonClockSkew:
		return "set the clock of this machine right: requests are signed with its time"
	case ReasonUnreachable:
		return "check the endpoint, name resolution, network policies and proxies (HTTPS_PROXY) between here and the store"
	case ReasonUntrustedCertificate:
		if c.S3 != nil {
			return "set caBundle to a PEM file with the authority of the store's certificate, and use the host name that it is for"
		}
		return "set SSL_CERT_FILE to a PEM file with the authority of the store's certificate, and use the host name that it is for"
	case ReasonStoreFull:
		return "delete old snapshots (quorate snapshot prune), or give the store more space"
	case ReasonReadOnly:
		return "mount the volume for writing"
	case ReasonBusy:
		return "try again later"
	case ReasonEncryptionKey:
		return "check kmsKeyID, and allow the credentials kms:GenerateDataKey and kms:Decrypt on it"
	case ReasonUnsupported:
		return "use a store that has it: without it, what is stored could be overwritten"
	}
	return ""
}

func (c Config) scheme() string {
	switch {
	case c.S3 != nil:
		return "s3"
	case c.GCS != nil:
		return "gs"
	case c.Azure != nil:
		return "azblob"
	}
	return "file"
}

// credentialsAdvice says, by the scheme of a store, where credentials come from.
var credentialsAdvice = map[string]string{
	"s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN for temporary ones), or give the ServiceAccount a role",
	"gs": "set GOOGLE_APPLICATION_CREDENTIALS to a file with a key, or give the ServiceAccount a workload identity",
	"azblob": "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, " +
		"or give the ServiceAccount a workload identity",
	"file": "give the user of this process access to the directory",
}

// permissionAdvice says, by the scheme of a store, what the credentials have to allow.
var permissionAdvice = map[string]string{
	"s3": "allow the credentials s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the objects, " +
		"and s3:ListBucket on the bucket (without that, an object that is not there is answered with AccessDenied too)",
	"gs":     "give the credentials the role Storage Object User (roles/storage.objectUser) on the bucket",
	"azblob": "give the credentials the role Storage Blob Data Contributor on the container",
	"file":   "let the user of this process read and write the directory (in a Pod: securityContext.fsGroup)",
}
