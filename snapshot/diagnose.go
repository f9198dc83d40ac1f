package snapshot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
)

// diagnose finds out what the error of a store, of the network or of a file system means, and what
// of it a person needs. The store's own word comes first: it says more than the code of the HTTP
// answer.
func diagnose(err error) (Reason, string) {
	if stall, ok := errors.AsType[stalled](err); ok { // of an answer that had begun, too
		return ReasonUnreachable, "the connection stalled: " + stall.Error()
	}
	for _, of := range []func(error) (Reason, string){ofS3, ofGCS, ofAzure, ofTLS, ofFile, ofNetwork} {
		if reason, detail := of(err); reason != "" {
			return reason, detail
		}
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return ReasonNotFound, ""
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		return ReasonAlreadyExists, ""
	default:
		return ReasonStoreFailed, ""
	}
}

// s3Codes are the error codes of Amazon S3, of AWS STS, and of servers that speak their protocol.
var s3Codes = map[string]Reason{
	"NoSuchKey": ReasonNotFound, "NotFound": ReasonNotFound,
	"NoSuchBucket":       ReasonNoSuchBucket,
	"PreconditionFailed": ReasonAlreadyExists,
	"AccessDenied":       ReasonAccessDenied, "Forbidden": ReasonAccessDenied, "AllAccessDisabled": ReasonAccessDenied,
	"AccountProblem": ReasonAccessDenied, "UnauthorizedAccess": ReasonAccessDenied,
	"InvalidAccessKeyId": ReasonInvalidCredentials, "SignatureDoesNotMatch": ReasonInvalidCredentials,
	"InvalidToken": ReasonInvalidCredentials, "InvalidIdentityToken": ReasonInvalidCredentials,
	"InvalidClientTokenId": ReasonInvalidCredentials, "XAdminUserNotFound": ReasonInvalidCredentials,
	"ExpiredToken": ReasonCredentialsExpired, "ExpiredTokenException": ReasonCredentialsExpired,
	"TokenRefreshRequired": ReasonCredentialsExpired,
	"RequestTimeTooSkewed": ReasonClockSkew, "RequestExpired": ReasonClockSkew,
	"PermanentRedirect": ReasonWrongRegion, "MovedPermanently": ReasonWrongRegion, "TemporaryRedirect": ReasonWrongRegion,
	"AuthorizationHeaderMalformed": ReasonWrongRegion, "IllegalLocationConstraintException": ReasonWrongRegion,
	"QuotaExceeded": ReasonStoreFull, "InsufficientStorage": ReasonStoreFull, "XMinioStorageFull": ReasonStoreFull,
	"XMinioAdminBucketQuotaExceeded": ReasonStoreFull, "EntityTooLarge": ReasonStoreFull,
	"SlowDown": ReasonBusy, "ServiceUnavailable": ReasonBusy, "InternalError": ReasonBusy, "RequestTimeout": ReasonBusy,
	"Throttling": ReasonBusy, "ThrottlingException": ReasonBusy, "OperationAborted": ReasonBusy, "ConditionalRequestConflict": ReasonBusy,
	"NotImplemented": ReasonUnsupported,
}

func ofS3(err error) (Reason, string) {
	api, isAPI := errors.AsType[smithy.APIError](err)
	answer, isAnswer := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case isAPI && strings.HasPrefix(api.ErrorCode(), "KMS."):
		return ReasonEncryptionKey, spoken(api.ErrorCode(), api.ErrorMessage())
	case isAPI && s3Codes[api.ErrorCode()] != "":
		return s3Codes[api.ErrorCode()], spoken(api.ErrorCode(), api.ErrorMessage())
	case isAPI && isAnswer && answer.HTTPStatusCode() != http.StatusNotFound: // of an upload, a user: not of an object
		return ofStatus(answer.HTTPStatusCode()), spoken(api.ErrorCode(), api.ErrorMessage())
	case isAPI:
		return ReasonStoreFailed, spoken(api.ErrorCode(), api.ErrorMessage())
	case isAnswer && answer.HTTPStatusCode() != 0:
		return ofStatus(answer.HTTPStatusCode()), http.StatusText(answer.HTTPStatusCode())
	}
	return "", ""
}

func ofGCS(err error) (Reason, string) {
	if errors.Is(err, storage.ErrBucketNotExist) {
		return ReasonNoSuchBucket, "the bucket does not exist"
	}
	if errors.Is(err, storage.ErrObjectNotExist) {
		return ReasonNotFound, ""
	}
	if token, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if token.ErrorCode == "invalid_grant" {
			return ReasonCredentialsExpired, spoken(token.ErrorCode, token.ErrorDescription)
		}
		return ReasonInvalidCredentials, spoken(token.ErrorCode, token.ErrorDescription)
	}
	api, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return "", ""
	}
	reason := ofStatus(api.Code)
	if api.Code == http.StatusNotFound && strings.Contains(strings.ToLower(api.Message+api.Body), "bucket") {
		reason = ReasonNoSuchBucket
	}
	for _, item := range api.Errors {
		switch item.Reason {
		case "quotaExceeded":
			reason = ReasonStoreFull
		case "rateLimitExceeded", "userRateLimitExceeded":
			reason = ReasonBusy
		}
	}
	return reason, spoken(http.StatusText(api.Code), api.Message)
}

var azureCodes = map[string]Reason{
	"BlobNotFound": ReasonNotFound, "ContainerNotFound": ReasonNoSuchBucket, "ContainerBeingDeleted": ReasonNoSuchBucket,
	"BlobAlreadyExists": ReasonAlreadyExists, "ConditionNotMet": ReasonAlreadyExists, "TargetConditionNotMet": ReasonAlreadyExists,
	"AuthenticationFailed": ReasonInvalidCredentials, "InvalidAuthenticationInfo": ReasonCredentialsExpired,
	"NoAuthenticationInformation": ReasonNoCredentials, "AccountIsDisabled": ReasonAccessDenied,
	"ServerBusy": ReasonBusy, "InternalError": ReasonBusy, "OperationTimedOut": ReasonBusy,
	"RequestBodyTooLarge": ReasonStoreFull, "BlobImmutableDueToPolicy": ReasonAccessDenied,
}

func ofAzure(err error) (Reason, string) {
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return ReasonInvalidCredentials, "the token service refused the credentials"
	}
	api, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case ok && azureCodes[api.ErrorCode] != "":
		return azureCodes[api.ErrorCode], api.ErrorCode
	case ok:
		return ofStatus(api.StatusCode), api.ErrorCode
	case strings.Contains(err.Error(), "failed to acquire a token"): // DefaultAzureCredential, whose error has no exported type
		return ReasonNoCredentials, "no source of credentials has any"
	}
	return "", ""
}

// ofStatus is what the code of an HTTP answer means where the store says no more.
func ofStatus(code int) Reason {
	switch code {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return ReasonWrongRegion
	case http.StatusUnauthorized:
		return ReasonInvalidCredentials
	case http.StatusForbidden:
		return ReasonAccessDenied
	case http.StatusNotFound:
		return ReasonNotFound
	case http.StatusPreconditionFailed:
		return ReasonAlreadyExists
	case http.StatusNotImplemented:
		return ReasonUnsupported
	case http.StatusInsufficientStorage:
		return ReasonStoreFull
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ReasonBusy
	}
	return ReasonStoreFailed
}

func ofTLS(err error) (Reason, string) {
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return ReasonUntrustedCertificate, unknown.Error()
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return ReasonUntrustedCertificate, host.Error()
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return ReasonUntrustedCertificate, "the certificate is not valid (expired, not yet valid, or not for a server)"
	}
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return ReasonUntrustedCertificate, failed.Err.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		return ReasonUnreachable, "the endpoint does not speak TLS: write http:// for one that shall not"
	}
	return "", ""
}

func ofFile(err error) (Reason, string) {
	for errno, reason := range map[syscall.Errno]Reason{
		syscall.ENOSPC: ReasonStoreFull, syscall.EDQUOT: ReasonStoreFull, syscall.EFBIG: ReasonStoreFull,
		syscall.EROFS: ReasonReadOnly,
	} {
		if errors.Is(err, errno) {
			return reason, errno.Error()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ReasonNotFound, ""
	case errors.Is(err, fs.ErrExist):
		return ReasonAlreadyExists, ""
	case errors.Is(err, fs.ErrPermission):
		return ReasonAccessDenied, "permission denied"
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL):
		return ReasonUnsupported, "the file system can neither link a file nor rename it only where none is"
	}
	return "", ""
}

func ofNetwork(err error) (Reason, string) {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return ReasonUnreachable, "the name " + dns.Name + " was not resolved"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Addr != nil && op.Op == "dial" {
			return ReasonUnreachable, "dial " + op.Addr.String() + ": " + cause(op.Err)
		}
		return ReasonUnreachable, "the connection broke: " + cause(op.Err)
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonUnreachable, "it took too long"
	case ok && timeout.Timeout():
		return ReasonUnreachable, "the store did not answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return ReasonUnreachable, "the connection ended too early"
	}
	return "", ""
}

// cause is the innermost reason of a failed connection, without its addresses.
func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // this very error, of net.OpError
		return "no answer in time"
	}
	return err.Error()
}

// spoken is the code and the message of a store.
func spoken(code, message string) string {
	message = strings.TrimSuffix(strings.TrimSpace(message), ".")
	switch {
	case message == "" || strings.EqualFold(message, code):
		return code
	case code == "":
		return message
	}
	return code + ": " + message
}
