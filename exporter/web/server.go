package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// Listen says where to listen, and with which certificates and passwords.
type Listen struct {
	Addresses     []string
	SystemdSocket bool
	ConfigFile    string        // of the exporter toolkit
	AdminSocket   string        // path of the admin socket; empty: there is none
	Limits        *Limits       // those of the handlers
	Grace         time.Duration // for requests in flight at the end; default 4 s
	// Opened is called with the URL of each address once it is listened on; nil: it is not.
	Opened func(url string)
}

// Serve answers until the context ends, and then lets requests in flight finish.
func Serve(ctx context.Context, h Handlers, l Listen, log *slog.Logger) error {
	if l.Limits == nil {
		l.Limits = NewLimits(log)
	}
	var admin *adminSocket
	if l.AdminSocket != "" {
		var err error
		if admin, err = openAdmin(l.AdminSocket, h.Admin, l.Limits.log); err != nil {
			return fmt.Errorf("--web.admin-socket: %w", err)
		}
		defer admin.close()
		log.Info("serving the admin socket", "path", l.AdminSocket)
	}
	server := newServer(h.Network, l.Limits)
	if l.Opened != nil {
		server.BaseContext = func(n net.Listener) context.Context {
			l.Opened(address(n))
			return context.Background()
		}
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(l.Grace, 4*time.Second))
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { admin.shutdown(grace, log) })
		both.Go(func() { shutdown(grace, server, log) })
		both.Wait()
	})
	err := toolkit.ListenAndServe(server, &toolkit.FlagConfig{
		WebListenAddresses: &l.Addresses, WebSystemdSocket: &l.SystemdSocket, WebConfigFile: &l.ConfigFile,
	}, l.Limits.log)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("listen on %v: %w", l.Addresses, err)
	}
	<-stopped
	return nil
}

// shutdown lets requests in flight finish until the context ends.
func shutdown(ctx context.Context, server *http.Server, log *slog.Logger) {
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("requests were cut off", "err", err)
	}
}

// newServer returns a server within limits: no client holds on to it for ever, and headers, connections and
// the log have a bound.
func newServer(h http.Handler, l *Limits) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
		WriteTimeout:      time.Minute,     // longer than any sensible scrape timeout
		IdleTimeout:       5 * time.Minute, // longer than any sensible scrape interval
		MaxHeaderBytes:    mostHeader,
		ConnContext:       l.connections.Accepted,
		ConnState:         l.connections.Changed,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          mostStreams,
			MaxDecoderHeaderTableSize:     4 << 10,
			MaxEncoderHeaderTableSize:     4 << 10,
			MaxReadFrameSize:              16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10,
			MaxReceiveBufferPerStream:     16 << 10,
			WriteByteTimeout:              20 * time.Second,
		},
		ErrorLog: slog.NewLogLogger(l.log.Handler(), slog.LevelWarn),
	}
}
