package limit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// What a connection counts. A TLS connection takes about four times the memory of a plain one.
const (
	plainCost = 1
	tlsCost   = 4
)

// Buffers of a connection in the kernel, bytes: without a limit it lets a client that does not read have
// megabytes. Linux doubles them.
const (
	sendBuffer    = 32 << 10
	receiveBuffer = 16 << 10
)

// Connections bounds how many connections a server has. When there are too many, it closes one without a
// request: of the client with the most connections, first those that never had one, then the oldest. An idle
// connection of a client that scrapes so outlives a flood. The methods are safe for concurrent use.
type Connections struct {
	most   int
	relief *Relief

	mu   sync.Mutex
	used int // cost of all
	by   map[client]int
	all  map[net.Conn]*connection
}

// connection is one open connection.
type connection struct {
	conn   net.Conn
	client client
	cost   int
	busy   int       // requests being answered
	served bool      // it had a request
	since  time.Time // when it was accepted, or its last request ended
}

// NewConnections returns a limit of that many connections without TLS, or a quarter as many with TLS.
func NewConnections(most int, relief *Relief) *Connections {
	return &Connections{most: most, relief: relief, by: map[client]int{}, all: map[net.Conn]*connection{}}
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

// Accepted takes in a new connection, and closes another one where there are too many, or the new one where
// all others are busy. It is for the field ConnContext of http.Server.
func (c *Connections) Accepted(ctx context.Context, conn net.Conn) context.Context {
	x := &connection{conn: conn, client: clientOf(conn.RemoteAddr().String()), cost: plainCost, since: time.Now()}
	if _, ok := conn.(*tls.Conn); ok {
		x.cost = tlsCost
	}
	if t, ok := raw(conn).(*net.TCPConn); ok {
		t.SetWriteBuffer(sendBuffer)   //nolint:errcheck // the connection has ended, which its reader finds
		t.SetReadBuffer(receiveBuffer) //nolint:errcheck // likewise
		setUserTimeout(t)
	}
	for _, victim := range c.add(x) {
		drop(victim)
	}
	return context.WithValue(ctx, connectionKey{}, x)
}

// add takes in a connection and returns those to be closed, which are forgotten.
func (c *Connections) add(x *connection) (victims []net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[x.conn] = x
	c.used += x.cost
	c.by[x.client] += x.cost
	for c.used > c.most {
		v := c.victim(x)
		if v == nil {
			v = x
		}
		c.forget(v)
		c.relief.Note()
		victims = append(victims, v.conn)
		if v == x {
			break
		}
	}
	return victims
}

// victim returns the connection to be closed for a new one; nil: all others are busy.
func (c *Connections) victim(except *connection) (worst *connection) {
	for _, x := range c.all {
		if x != except && x.busy == 0 && (worst == nil || c.worse(x, worst)) {
			worst = x
		}
	}
	return worst
}

// worse reports whether a is to be closed rather than b.
func (c *Connections) worse(a, b *connection) bool {
	if m, n := c.by[a.client], c.by[b.client]; m != n {
		return m > n
	}
	if a.served != b.served {
		return b.served
	}
	return a.since.Before(b.since)
}

func (c *Connections) forget(x *connection) {
	delete(c.all, x.conn)
	c.used -= x.cost
	if c.by[x.client] -= x.cost; c.by[x.client] == 0 {
		delete(c.by, x.client)
	}
}

// Changed notes that a connection has ended. It is for the field ConnState of http.Server.
func (c *Connections) Changed(conn net.Conn, s http.ConnState) {
	if s != http.StateClosed && s != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.all[conn]; x != nil {
		c.forget(x)
	}
}

// Handler marks a connection as busy while next answers a request of it.
func (c *Connections) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			c.busy(x, 1)
			defer c.busy(x, -1)
		}
		next.ServeHTTP(w, r)
	})
}

func (c *Connections) busy(x *connection, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.busy += n
	x.served, x.since = true, time.Now()
}

// drop closes a connection at once: what the client has not read is discarded, not kept by the kernel.
func drop(conn net.Conn) {
	conn = raw(conn) // a tls.Conn would first try to write
	if t, ok := conn.(*net.TCPConn); ok {
		t.SetLinger(0) //nolint:errcheck // it has ended
	}
	conn.Close() //nolint:errcheck // it has ended
}

// raw returns the connection below TLS.
func raw(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return conn
}
