package limit

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a ResponseWriter whose client does not read: a write ends when its deadline is in the past.
type stuck struct {
	*httptest.ResponseRecorder
	cut  chan struct{}
	once sync.Once
}

func (s *stuck) Write(b []byte) (int, error) {
	select {
	case <-s.cut:
		return 0, context.DeadlineExceeded
	case <-time.After(time.Hour):
		return len(b), nil
	}
}

func (s *stuck) SetWriteDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		s.once.Do(func() { close(s.cut) })
	}
	return nil
}

// requests sends requests to a gate.
type requests struct {
	gate    *Gate
	handler http.Handler
	all     sync.WaitGroup

	mu     sync.Mutex
	turned []string
}

func newRequests(seats, queue int) *requests {
	r := new(requests)
	relief := &Relief{free: func() {}}
	r.gate = NewGate(seats, queue, relief, func(address string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.turned = append(r.turned, address)
	})
	r.handler = r.gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("page")) //nolint:errcheck // the client may not read
	}))
	return r
}

// unread sends a request whose response is not read.
func (r *requests) unread(from string) *stuck {
	w := &stuck{ResponseRecorder: httptest.NewRecorder(), cut: make(chan struct{})}
	request := httptest.NewRequest("GET", "/", nil)
	request.RemoteAddr = from
	r.all.Go(func() { r.handler.ServeHTTP(w, request) })
	synctest.Wait()
	return w
}

// refused returns the addresses of the requests that were refused.
func (r *requests) refused() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.turned)
}

// read sends a request, and returns the status and how long it took.
func (r *requests) read(from string) (*httptest.ResponseRecorder, time.Duration) {
	w, start := httptest.NewRecorder(), time.Now()
	request := httptest.NewRequest("GET", "/", nil)
	request.RemoteAddr = from
	r.handler.ServeHTTP(w, request)
	return w, time.Since(start)
}

// One client never gets all seats, so that another one is answered at once.
func TestGate_OneClientLeavesSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(4, 10)
		for i := range 8 {
			r.unread(fmt.Sprintf("10.0.0.1:%d", i+1))
		}
		if len(r.gate.taken) != 3 || len(r.gate.waiting) != 5 {
			t.Errorf("%d seats taken, %d wait", len(r.gate.taken), len(r.gate.waiting))
		}
		if w, took := r.read("10.0.0.2:1"); w.Code != 200 || took > 0 {
			t.Errorf("another client: %d after %v", w.Code, took)
		}
		r.end(t)
	})
}

// end lets all requests end, and checks that none holds anything.
func (r *requests) end(t *testing.T) {
	t.Helper()
	time.Sleep(2 * time.Hour)
	r.all.Wait()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if len(r.gate.taken) != 0 || len(r.gate.waiting) != 0 || len(r.gate.held) != 0 {
		t.Errorf("left behind: %d seats, %d waiting, %v", len(r.gate.taken), len(r.gate.waiting), r.gate.held)
	}
}

// When all seats are taken by responses that nobody reads, they are cut for those who wait; while nobody
// waits, they go on.
func TestGate_CutsUnreadResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(4, 10)
		var all []*stuck
		for i := range 4 {
			all = append(all, r.unread(fmt.Sprintf("10.0.0.%d:1", i+1)))
		}
		time.Sleep(time.Minute)
		if n := cutOf(all); n != 0 {
			t.Errorf("%d are cut though nobody waits", n)
		}
		if w, took := r.read("10.0.0.9:1"); w.Code != 200 || took > stallTime {
			t.Errorf("%d after %v", w.Code, took)
		}
		if n := cutOf(all); n != 1 {
			t.Errorf("%d are cut for one that waits", n)
		}
		r.end(t)
	})
}

func cutOf(all []*stuck) (n int) {
	for _, w := range all {
		select {
		case <-w.cut:
			n++
		default:
		}
	}
	return n
}

// Without a seat in time, or a place in the queue, the request gets 503 and is told when to come again. The
// client with the most requests is refused first.
func TestGate_RefusesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(1, 3)
		busy := make(chan struct{})
		r.handler = r.gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-busy }))
		first := r.unread("10.0.0.1:1")
		var waiting []*stuck
		for i := range 3 {
			waiting = append(waiting, r.unread(fmt.Sprintf("10.0.0.1:%d", i+2)))
		}
		other := r.unread("10.0.0.2:1") // takes the place of the last of 10.0.0.1
		if waiting[2].Code != 503 || waiting[2].Header().Get("Retry-After") != "1" || waiting[0].Body.Len() > 0 || r.refused() != "[10.0.0.1:4]" {
			t.Errorf("%d, Retry-After %q, refused %v", waiting[2].Code, waiting[2].Header().Get("Retry-After"), r.refused())
		}
		time.Sleep(2 * queueTime)
		synctest.Wait()
		if first.Code != 200 || other.Code != 503 || waiting[0].Code != 503 {
			t.Errorf("%d, %d, %d after the time of waiting", first.Code, other.Code, waiting[0].Code)
		}
		close(busy)
		r.end(t)
	})
}

// A request whose client goes away while it waits leaves the queue.
func TestGate_ForgetsWhoGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(1, 3)
		r.unread("10.0.0.1:1")
		ctx, cancel := context.WithCancel(t.Context())
		request := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
		r.all.Go(func() { r.handler.ServeHTTP(httptest.NewRecorder(), request) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := len(r.gate.waiting); n != 0 {
			t.Errorf("%d wait", n)
		}
		r.end(t)
	})
}

// A client that reads a byte now and then is cut as well, a while after the first byte.
func TestSeat_SlowReaderIsStalled(t *testing.T) {
	start := time.Now()
	s := new(seat)
	s.writing(start)
	s.writing(time.Time{})
	s.writing(start.Add(writeTime - time.Second/2))
	if s.stalled(start.Add(writeTime - time.Second/4)) {
		t.Error("stalled too early")
	}
	if !s.stalled(start.Add(writeTime)) {
		t.Error("not stalled")
	}
	s.writing(time.Time{})
	if s.stalled(start.Add(time.Hour)) {
		t.Error("stalled though no write is in progress")
	}
}

func TestClientOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.7:4711": "10.0.0.7/32", "[::ffff:10.0.0.7]:1": "10.0.0.7/32", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64",
		"@": "invalid Prefix", "": "invalid Prefix",
	} {
		if got := clientOf(address).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
