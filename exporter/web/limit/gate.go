package limit

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Patience of a Gate.
const (
	queueTime = 10 * time.Second // how long a request waits for a seat
	stallTime = 2 * time.Second  // a write that lasts this long is cut when others wait
	writeTime = 5 * time.Second  // and so is a response, counted from its first byte
	lookEvery = 100 * time.Millisecond
)

// Gate bounds how many requests are answered at once. Further ones wait for a moment, and then get 503. When
// requests wait, responses that clients do not read are cut, so that they cannot keep the seats. A client
// gets at most three quarters of the seats. The methods are safe for concurrent use.
type Gate struct {
	seats  int // how many there are
	queue  int // how many requests may wait
	relief *Relief
	turned func(address string) // is told of each request that is refused

	mu      sync.Mutex
	taken   []*seat
	waiting []*waiter // the first came first
	held    map[client]int
}

// NewGate returns a gate with that many seats, and as many requests waiting for one as queue says. turned is
// called with the address of each client whose request is refused.
func NewGate(seats, queue int, relief *Relief, turned func(address string)) *Gate {
	return &Gate{seats: seats, queue: queue, relief: relief, turned: turned, held: map[client]int{}}
}

// seat is a request that is being answered.
type seat struct {
	client  client
	control *http.ResponseController

	mu    sync.Mutex
	first time.Time // when the first write began
	since time.Time // when the write in progress began; zero: none is
	over  bool      // it was cut, or has been answered
}

// waiter is a request without a seat.
type waiter struct {
	seat    *seat
	ready   chan struct{} // closed when it has the seat
	refused chan struct{} // closed when it will not get one
}

// Handler answers with next when there is a seat, and with 503 when there is none in time.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if out, leave, ok := g.Enter(w, r); ok {
			defer leave()
			next.ServeHTTP(out, r)
		}
	})
}

// Enter waits for a seat. With one, it returns what the response is to be written to, and what to call after
// it. Without one in time, it has responded with 503.
func (g *Gate) Enter(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, leave func(), ok bool) {
	s := &seat{client: clientOf(r.RemoteAddr), control: http.NewResponseController(w)}
	if !g.enter(r.Context(), s) {
		g.turned(r.RemoteAddr)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return nil, nil, false
	}
	return &seatWriter{w, s}, func() { g.leave(s) }, true
}

// enter waits for a seat, and reports whether there was one.
func (g *Gate) enter(ctx context.Context, s *seat) bool {
	w := &waiter{seat: s, ready: make(chan struct{}), refused: make(chan struct{})}
	if g.enqueue(w) {
		return true
	}
	timeout := time.NewTimer(queueTime)
	defer timeout.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.ready:
			return true
		case <-w.refused:
			return false
		case <-look.C:
			g.cut()
		case <-timeout.C:
			return !g.giveUp(w)
		case <-ctx.Done():
			return !g.giveUp(w)
		}
	}
}

// enqueue adds a request, and reports whether it has a seat at once. Where the queue is full, the last
// request of the client with the most of them is refused.
func (g *Gate) enqueue(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, w)
	g.assign()
	if !slices.Contains(g.waiting, w) {
		return true
	}
	g.relief.Note()
	if len(g.waiting) > g.queue {
		n := map[client]int{}
		for _, x := range g.waiting {
			n[x.seat.client]++
		}
		last := g.waiting[0]
		for _, x := range g.waiting {
			if n[x.seat.client] >= n[last.seat.client] {
				last = x
			}
		}
		close(last.refused)
		g.drop(last)
	}
	return false
}

// drop removes a request from the queue, and reports whether it was there.
func (g *Gate) drop(w *waiter) bool {
	n := len(g.waiting)
	g.waiting = slices.DeleteFunc(g.waiting, func(x *waiter) bool { return x == w })
	return len(g.waiting) < n
}

// giveUp ends waiting, and reports whether the request has no seat.
func (g *Gate) giveUp(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drop(w) || !slices.Contains(g.taken, w.seat)
}

// assign gives free seats to those who wait: first to the client with the fewest, then to who came first.
func (g *Gate) assign() {
	for len(g.taken) < g.seats {
		var next *waiter
		for _, w := range g.waiting {
			if n := g.held[w.seat.client]; n < max(1, g.seats*3/4) && (next == nil || n < g.held[next.seat.client]) {
				next = w
			}
		}
		if next == nil {
			return
		}
		g.drop(next)
		g.taken = append(g.taken, next.seat)
		g.held[next.seat.client]++
		close(next.ready)
	}
}

// leave frees a seat.
func (g *Gate) leave(s *seat) {
	s.end()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = slices.DeleteFunc(g.taken, func(x *seat) bool { return x == s })
	if g.held[s.client]--; g.held[s.client] == 0 {
		delete(g.held, s.client)
	}
	g.assign()
}

// cut ends the responses that are not read, at most one for each request that waits.
func (g *Gate) cut() {
	for _, s := range g.stalled(time.Now()) {
		s.cut()
	}
}

// stalled returns the responses to be cut: first those of the client with the most seats.
func (g *Gate) stalled(now time.Time) (out []*seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.taken {
		if s.stalled(now) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *seat) int { return cmp.Compare(g.held[b.client], g.held[a.client]) })
	return out[:min(len(out), len(g.waiting))]
}

// stalled reports whether the client does not read, or only slowly.
func (s *seat) stalled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over && !s.since.IsZero() && (now.Sub(s.since) >= stallTime || now.Sub(s.first) >= writeTime)
}

// cut has writes of the response fail from now on.
func (s *seat) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.control.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // all writers of net/http have deadlines
	}
}

// end notes that the request was answered; the deadline is not set for the next one on its connection.
func (s *seat) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// writing notes the start of a write, or with the zero time its end.
func (s *seat) writing(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = since
	if s.first.IsZero() {
		s.first = since
	}
}

// seatWriter is the ResponseWriter of a request with a seat.
type seatWriter struct {
	http.ResponseWriter
	seat *seat
}

// Write implements http.ResponseWriter.
func (w *seatWriter) Write(b []byte) (int, error) {
	w.seat.writing(time.Now())
	defer w.seat.writing(time.Time{})
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *seatWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
