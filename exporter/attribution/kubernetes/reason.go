package kubernetes

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// Reason says in one word why something is not known, or not known any better.
type Reason string

// The reasons. Each is a value a label may have.
const (
	Waiting     Reason = "waiting"  // not asked yet
	Unset       Reason = "unset"    // not configured: nobody is asked
	Missing     Reason = "missing"  // no such socket or file: no kubelet here, or its directory is not mounted
	Refused     Reason = "refused"  // nobody listens
	Hanging     Reason = "hanging"  // no answer in time
	Denied      Reason = "denied"   // no right to ask, or to open the socket
	Starting    Reason = "starting" // the kubelet says that it is not ready
	RateLimited Reason = "rate_limited"
	TooLarge    Reason = "too_large"   // the answer is beyond what is read
	Unsupported Reason = "unsupported" // the server is too old for the question, or has it switched off
	Expired     Reason = "expired"     // a watch was behind by too much, and lists anew
	Broken      Reason = "broken"      // the answer makes no sense
	Unavailable Reason = "unavailable" // anything else between here and the server
)

// reasons are all, for counting.
var reasons = [...]Reason{
	Waiting, Unset, Missing, Refused, Hanging, Denied, Starting, RateLimited, TooLarge, Unsupported, Expired, Broken, Unavailable,
}

// Error says which source failed, and why.
type Error struct {
	Source Source
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return string(e.Source) + ": " + e.Err.Error() }

// Unwrap returns what the system or the server said.
func (e *Error) Unwrap() error { return e.Err }

// errTooLarge is what a reader with a limit answers behind it.
var errTooLarge = errors.New("more than is read")

// why finds the reason of a failure of the system, of HTTP, or of the API server.
func why(err error) Reason {
	var timeout net.Error
	var own *Error
	var refused *refusal
	var gone *lost
	switch {
	case errors.As(err, &own):
		return own.Reason
	case errors.As(err, &refused):
		return refused.reason()
	case errors.As(err, &gone):
		return gone.reason
	case errors.Is(err, errOutside), errors.Is(err, errNoNode):
		return Unset
	case errors.Is(err, errTooLarge), errors.Is(err, safefile.ErrTooLarge):
		return TooLarge
	case errors.Is(err, fs.ErrNotExist), apierrors.IsNotFound(err):
		return Missing
	case errors.Is(err, fs.ErrPermission), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Denied
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return Expired
	case apierrors.IsTooManyRequests(err):
		return RateLimited
	case apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err):
		return Unsupported
	case errors.Is(err, safefile.ErrHanging), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout(), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return Hanging
	case errors.Is(err, errList), errors.Is(err, safefile.ErrNotRegular):
		return Broken
	}
	return Unavailable
}

// whyCall finds the reason of a failed gRPC call. dialled is how the last try to connect failed,
// which the status tells in words only.
func whyCall(err, dialled error) Reason {
	if strings.Contains(status.Convert(err).Message(), errTooLarge.Error()) { // our own word on an answer
		return TooLarge
	}
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return Hanging
	case codes.PermissionDenied, codes.Unauthenticated:
		return Denied
	case codes.FailedPrecondition:
		return Starting
	case codes.Unimplemented:
		return Unsupported
	case codes.Internal, codes.DataLoss, codes.InvalidArgument, codes.OutOfRange:
		return Broken
	case codes.ResourceExhausted: // the server's limit of questions, or ours of answers
		if strings.Contains(status.Convert(err).Message(), "larger than max") {
			return TooLarge
		}
		return RateLimited
	case codes.Unavailable:
		if dialled != nil {
			return why(dialled)
		}
	}
	return Unavailable
}
