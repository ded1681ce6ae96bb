package kubernetes

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// mostReceived is how much of one answer is read. The kubelet of a node with 1,000 pods needs less than one.
const mostReceived = 16 << 20

// line is a connection to a socket of the kubelet. It is kept for as long as the socket is the same
// file, and redialled by itself, with growing and jittered pauses.
type line struct {
	*grpc.ClientConn
	failed atomic.Pointer[error] // how the last try to connect went, nil when it went well
}

// openLine prepares the connection; made is called for each that comes about.
func openLine(socket string, made func()) (*line, error) {
	l := &line{}
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's permissions are what protects it
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", socket)
			if err != nil {
				l.failed.Store(&err)
				return nil, err
			}
			l.failed.Store(nil)
			made()
			return c, nil
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 15 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostReceived)),
		grpc.WithIdleTimeout(0), // one long connection, not one for each time it is needed
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %s: %w", socket, err)
	}
	l.ClientConn = conn
	return l, nil
}

// why finds the reason of a failed call.
func (l *line) why(err error) Reason {
	var dialled error
	if p := l.failed.Load(); p != nil {
		dialled = *p
	}
	return whyCall(err, dialled)
}
