package kubernetes

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// line is a connection to a socket of the kubelet. It is kept for as long as the socket is the same
// file, and redialled by itself, with growing and jittered pauses.
type line struct {
	*grpc.ClientConn
	failed atomic.Pointer[error]       // how the last try to connect went, nil when it went well
	file   atomic.Pointer[fs.FileInfo] // the socket when it was last connected to
	made   atomic.Uint64               // how often it was connected to
}

// openLine prepares the connection, which is made when it is first needed.
func openLine(socket string) (*line, error) {
	l := &line{}
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's permissions are what protects it
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if info, err := os.Stat(socket); err == nil {
				l.file.Store(&info)
			}
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", socket)
			if err != nil {
				l.failed.Store(&err)
				return nil, err
			}
			l.failed.Store(nil)
			l.made.Add(1)
			return c, nil
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 15 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(within(mostReceived), grpc.ForceCodecV2(newCountedCodec())),
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

// elsewhere says whether the socket is another file now than the one that was connected to.
func (l *line) elsewhere(now fs.FileInfo) bool {
	then := l.file.Load()
	return then != nil && now != nil && !same(*then, now)
}
