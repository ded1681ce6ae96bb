package limit

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// connected is a connection from an address.
type connected struct {
	net.Conn
	from   string
	closed bool
}

func (c *connected) RemoteAddr() net.Addr { return address(c.from) }
func (c *connected) Close() error         { c.closed = true; return nil }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// accept takes in a connection from an address.
func accept(c *Connections, from string) (*connected, context.Context) {
	time.Sleep(time.Second)
	x := &connected{from: from}
	return x, c.Accepted(context.Background(), x)
}

// answer answers a request on a connection, and meanwhile calls f.
func answer(ctx context.Context, c *Connections, f func()) {
	h := c.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f() }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
}

// When there are too many, one of the client with the most is closed: first one that never had a request, then
// the oldest; and never one with a request.
func TestConnections_ClosesHeaviestClientFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConnections(4, &Relief{free: func() {}})
		honest, _ := accept(c, "10.0.0.2:1")
		idle, ctx := accept(c, "10.0.0.1:1")
		answer(ctx, c, func() {})
		silent, _ := accept(c, "10.0.0.1:2")
		busy, ctx := accept(c, "10.0.0.1:3")
		answer(ctx, c, func() {
			for i, want := range []*connected{silent, idle} {
				if accept(c, fmt.Sprintf("10.0.1.%d:1", i)); !want.closed {
					t.Errorf("%s is not closed next", want.from)
				}
			}
		})
		if honest.closed || busy.closed {
			t.Errorf("closed: %v of the client with one connection, %v with a request", honest.closed, busy.closed)
		}
	})
}

// Where all have a request, the new connection is closed.
func TestConnections_RefusesWhenAllAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConnections(1, &Relief{free: func() {}})
		busy, ctx := accept(c, "10.0.0.1:1")
		answer(ctx, c, func() {
			if late, _ := accept(c, "10.0.0.2:1"); !late.closed || busy.closed {
				t.Errorf("closed: the new one %v, the other %v", late.closed, busy.closed)
			}
		})
		c.Changed(busy, http.StateClosed)
		if c.used != 0 || len(c.all) != 0 || len(c.by) != 0 {
			t.Errorf("%d, %v, %v are left", c.used, c.all, c.by)
		}
	})
}

// A TLS connection counts for four.
func TestConnections_TLSCountsMore(t *testing.T) {
	c := NewConnections(8, &Relief{free: func() {}})
	var all []*connected
	for range 3 {
		x := &connected{from: "10.0.0.1:1"}
		all = append(all, x)
		c.Accepted(t.Context(), tls.Server(x, &tls.Config{MinVersion: tls.VersionTLS13}))
	}
	if !all[0].closed || all[1].closed || all[2].closed || c.used != 8 {
		t.Errorf("%d are counted", c.used)
	}
}

// Memory is given back once, when the overload is over for a while.
func TestRelief_WaitsForTheEndOfTheOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var freed atomic.Int64
		r := &Relief{free: func() { freed.Add(1) }}
		for range 10 {
			r.Note()
			time.Sleep(reliefDelay / 2)
		}
		if n := freed.Load(); n != 0 {
			t.Errorf("freed %d times during the overload", n)
		}
		time.Sleep(reliefDelay)
		synctest.Wait()
		r.Note()
		time.Sleep(2 * reliefDelay)
		synctest.Wait()
		if n := freed.Load(); n != 2 {
			t.Errorf("freed %d times, want 2", n)
		}
	})
}
