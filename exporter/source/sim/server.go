package sim

import (
	"math"
	"slices"
	"sort"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The buckets of vLLM's histograms, as its version 1 has them.
var (
	firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenBounds      = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds    = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

const (
	stepsPerTick = 4
	stepSeconds  = 1. / stepsPerTick
	blockTokens  = 16   // of the cache, which is given out in blocks
	longest      = 512  // tokens that an answer may have
	promptLimit  = 8192 // tokens that a prompt may have
	dispatch     = 2e-3 // seconds at least until the engine takes up a request it has room for
)

// server is an engine's process: a queue, places at which requests are worked on, and a cache that
// has room for so many tokens. Time is in seconds since a cycle began.
type server struct {
	model    *llm
	seed     uint64
	capacity int64 // blocks of the cache

	waiting, running []request // the first waits longest, the last was taken up last
	held             int64     // blocks that those running have
	arrived          uint64    // requests, ever
	next             float64   // when the next one arrives
	steps            uint64

	firstToken, betweenTokens, duration, queued *metric.Histogram

	finished                                                [telemetry.InferenceFinishReasonOther + 1]int64
	prompts, generated, lookedUp, found, preempted, answers int64
}

// request is one request and how far it is.
type request struct {
	end          telemetry.InferenceFinishReason // why it is going to end
	arrived      float64
	patience     float64 // seconds that its client waits for it to be taken up
	waited       float64 // seconds until it was
	taken        bool    // it was
	prompt       int64   // tokens
	cached       int64   // of them, that others' prompts begin with too
	wanted, made int64   // tokens of its answer
	last, next   float64 // when it got a token and when it gets one
}

// blocks are what the request needs of the cache.
func (r *request) blocks() int64 { return (r.prompt + r.made + blockTokens) / blockTokens }

func newServer(m *llm, memory int64, seed uint64, now float64) *server {
	return &server{
		model: m, seed: seed, capacity: max(memory-m.weights, m.weights/8) / m.perToken / blockTokens, next: now,
		firstToken: metric.NewHistogram(firstTokenBounds), betweenTokens: metric.NewHistogram(tokenBounds),
		duration: metric.NewHistogram(requestBounds), queued: metric.NewHistogram(requestBounds),
	}
}

// strain is what makes a server's life harder.
type strain struct {
	slow   float64 // how many times as long all takes as it should
	prompt float64 // how many times as long prompts are as they are used to be
	answer float64 // and answers
	load   float64 // at least, of what it can do
	errors float64 // share of requests that fail
}

// pass lives through a tick in which requests come that are so large a share of what it can do.
func (s *server) pass(tick int64, load float64, x strain) {
	rate := s.model.speed() * max(load, x.load)
	for i := range stepsPerTick {
		from := float64(tick) + float64(i)*stepSeconds
		to := from + stepSeconds
		s.steps++
		pace := (s.model.pace + s.model.drag*float64(len(s.running))) * x.slow * (0.9 + 0.2*share(mix(s.seed, 's', s.steps)))
		s.write(to, pace)
		s.preempt()
		s.receive(to, rate, x)
		s.giveUp(to)
		s.take(from, to, pace, x.slow)
	}
}

// write gives all that are worked on the tokens they get until then, and ends those that have all.
func (s *server) write(to, pace float64) {
	still := s.running[:0]
	for _, r := range s.running {
		s.held -= r.blocks()
		before := r.made
		if r.next < to { // this one was begun at the pace of the step before
			if r.made == 0 {
				observe(s.firstToken, r.next-r.arrived, 1)
				s.prompts += r.prompt
				s.answers++
			} else {
				observe(s.betweenTokens, r.next-r.last, 1)
			}
			r.made, r.last = r.made+1, r.next
			r.next += pace
		}
		if more := min(r.wanted-r.made, 1+int64((to-r.next)/pace)); r.next < to && more > 0 {
			observe(s.betweenTokens, pace, more)
			r.made, r.last = r.made+more, r.last+float64(more)*pace
			r.next = r.last + pace
		}
		s.generated += r.made - before
		if r.made < r.wanted {
			s.held += r.blocks()
			still = append(still, r)
		} else {
			s.end(&r, r.last)
		}
	}
	s.running = still
}

// end is the end of a request.
func (s *server) end(r *request, at float64) {
	observe(s.duration, at-r.arrived, 1)
	observe(s.queued, r.waited, 1)
	s.finished[r.end]++
}

// preempt puts back those that were taken up last while the cache does not hold all.
func (s *server) preempt() {
	for s.held > s.capacity && len(s.running) > 1 {
		last := len(s.running) - 1
		r := s.running[last]
		s.running = s.running[:last]
		s.held -= r.blocks()
		s.preempted++
		s.waiting = slices.Insert(s.waiting, 0, r)
	}
}

// receive takes in what arrives until then.
func (s *server) receive(to, rate float64, x strain) {
	for s.next < to {
		s.waiting = append(s.waiting, s.request(x))
		s.arrived++
		s.next -= math.Log(share(mix(s.seed, 'a', s.arrived))) / rate
	}
}

// request makes up the request that comes next.
func (s *server) request(x strain) request {
	n, m := s.arrived, s.model
	r := request{arrived: s.next, patience: 30 + 60*share(mix(s.seed, 'p', n))}
	most := min(promptLimit, s.capacity*blockTokens/8)
	r.prompt = wholeUpTo(m.prompt*x.prompt*math.Exp(0.7*normal(mix(s.seed, 'q', n))), most)
	r.cached = int64(0.7*share(mix(s.seed, 'c', n))*float64(r.prompt)) / blockTokens * blockTokens
	r.wanted, r.end = wholeUpTo(m.answer*x.answer*math.Exp(0.75*normal(mix(s.seed, 't', n))), math.MaxInt32), telemetry.InferenceFinishReasonStop
	if limit := int64(longest * x.answer); r.wanted > limit {
		r.wanted, r.end = limit, telemetry.InferenceFinishReasonLength
	}
	switch fate := share(mix(s.seed, 'f', n)); {
	case fate < x.errors:
		r.wanted, r.end = 0, telemetry.InferenceFinishReasonError
	case fate > 0.99: // its client goes away while it is answered
		r.wanted, r.end = 1+r.wanted/3, telemetry.InferenceFinishReasonAbort
	}
	return r
}

// giveUp ends those whose clients have waited long enough to be taken up.
func (s *server) giveUp(now float64) {
	s.waiting = slices.DeleteFunc(s.waiting, func(r request) bool {
		if r.taken || r.arrived+r.patience > now {
			return false
		}
		r.waited, r.end = r.patience, telemetry.InferenceFinishReasonAbort
		s.end(&r, r.arrived+r.patience)
		return true
	})
}

// take takes up those that wait, in their order, while there is a place and room in the cache. What
// arrived in the step found one free; others had to wait until its end.
func (s *server) take(from, to, pace, slow float64) {
	n := 0
	for n < len(s.waiting) && len(s.running) < s.model.places {
		r := s.waiting[n]
		if len(s.running) > 0 && s.held+r.blocks() > s.capacity {
			break
		}
		n++
		at := max(to, r.arrived)
		if r.arrived >= from {
			at = r.arrived
		}
		at += dispatch * (1 + share(mix(s.seed, 'd', s.steps, uint64(n))))
		if !r.taken {
			r.taken, r.waited = true, at-r.arrived
		}
		if r.wanted == 0 {
			s.end(&r, at)
			continue
		}
		s.lookedUp += r.prompt + r.made
		s.found += r.cached
		crowded := 1 + float64(len(s.running))/float64(s.model.places)
		r.next = at + pace + float64(r.prompt+r.made-r.cached)/s.model.reading*crowded*slow
		s.held += r.blocks()
		s.running = append(s.running, r)
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
}

// tell fills a reading. Histograms go on, so the reading has copies.
func (s *server) tell(out *telemetry.Inference) {
	for _, h := range [...]struct {
		to   *[]telemetry.KeyedHistogram
		from *metric.Histogram
	}{
		{&out.TimeToFirstToken, s.firstToken}, {&out.InterTokenLatency, s.betweenTokens},
		{&out.RequestDuration, s.duration}, {&out.QueueLatency, s.queued},
	} {
		*h.to = []telemetry.KeyedHistogram{{Histogram: h.from.Clone()}}
	}
	out.PromptTokens.Set(float64(s.prompts))
	out.GeneratedTokens.Set(float64(s.generated))
	for i, n := range s.finished {
		tell(&out.RequestsFinished[i], i != int(telemetry.InferenceFinishReasonOther), float64(n))
	}
	out.RequestsRunning.Set(float64(len(s.running)))
	out.RequestsWaiting.Set(float64(len(s.waiting)))
	out.KvCacheUtilization.Set(min(1, float64(s.held)/float64(s.capacity)))
	out.PrefixCacheQueries.Set(float64(s.lookedUp))
	out.PrefixCacheHits.Set(float64(s.found))
	out.Preemptions.Set(float64(s.preempted))
}

// observe counts n observations of the same.
func observe(h *metric.Histogram, x float64, n int64) {
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += uint64(n)
	h.Sum += x * float64(n)
}

// share is a number above 0 and up to 1 of the bits of a mix.
func share(random uint64) float64 { return float64(random>>11+1) / (1 << 53) }

// normal is near a normal distribution of mean 0 and deviation 1, and never beyond 3.5: four sums of
// what is even.
func normal(random uint64) float64 {
	sum := 0.
	for range 4 {
		sum += float64(random&0xffff) / (1 << 16)
		random >>= 16
	}
	return (sum - 2) * math.Sqrt(3)
}

// wholeUpTo is a whole number from 1 to the most.
func wholeUpTo(x float64, most int64) int64 { return max(1, min(int64(x), most)) }
