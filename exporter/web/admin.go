package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// adminMode is the mode of the admin socket: what it offers is for the exporter's own user, and for root.
const adminMode = 0o600

// adminSocket serves on a Unix socket.
type adminSocket struct{ server *http.Server }

// openAdmin listens on a Unix socket and serves on it. A socket at the path that nobody listens on any more is
// replaced; anything else there is an error.
func openAdmin(path string, h http.Handler, log *slog.Logger) (*adminSocket, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The mode is set before the socket has a name, so that nobody else can ever open it.
	listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		wrong := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), adminMode) })
		return errors.Join(wrong, err)
	}}
	l, err := listen.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the path
	}
	if err := os.Chmod(path, adminMode); err != nil { // for systems where the line above has no effect
		l.Close() //nolint:errcheck // it was not used
		return nil, err
	}
	a := &adminSocket{&http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    mostHeader,
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	go a.server.Serve(l) //nolint:errcheck // it ends with the listener
	return a, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close() //nolint:errcheck // nothing was sent
		return fmt.Errorf("%s is in use by another process", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err //nolint:wrapcheck // it names the path
	}
	return os.Remove(path)
}

// shutdown lets requests in flight finish until the context ends, and removes the socket.
func (a *adminSocket) shutdown(ctx context.Context, log *slog.Logger) {
	if a != nil {
		shutdown(ctx, a.server, log)
	}
}

// close ends all at once, and removes the socket.
func (a *adminSocket) close() { a.server.Close() } //nolint:errcheck // it ends

// peerKey is the key of a requester of the admin socket in the context of a request.
type peerKey struct{}

// withPeer notes the user and the process of a connection over a Unix socket.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer(u))
}
