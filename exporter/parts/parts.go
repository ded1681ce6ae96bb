// Package parts runs named parts of a program in parallel, and reports which have not ended.
package parts

import (
	"context"
	"slices"
	"sync"
)

// Group is a set of parts. The zero Group is empty and ready to use. It is safe for concurrent use.
type Group struct {
	mu      sync.Mutex
	running []*part
	ended   chan struct{} // closed when no part runs; nil: nobody waits
}

type part struct{ names func() []string }

// Go runs a part in a goroutine of its own.
func (g *Group) Go(name string, run func()) {
	g.GoNamed(func() []string { return []string{name} }, run)
}

// GoNamed runs a part that consists of others: names returns those that have not ended. It is called while
// the part runs.
func (g *Group) GoNamed(names func() []string, run func()) {
	p := &part{names}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = append(g.running, p)
	go func() {
		defer g.end(p)
		run()
	}()
}

func (g *Group) end(p *part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = slices.DeleteFunc(g.running, func(other *part) bool { return other == p })
	if len(g.running) == 0 && g.ended != nil {
		close(g.ended)
		g.ended = nil
	}
}

// Running returns the names of the parts that have not ended, sorted.
func (g *Group) Running() []string {
	g.mu.Lock()
	running := slices.Clone(g.running)
	g.mu.Unlock()
	var out []string
	for _, p := range running {
		out = append(out, p.names()...)
	}
	slices.Sort(out)
	return out
}

// Wait waits until all parts have ended, those that start meanwhile included, or the context ends, and reports
// whether all have ended.
func (g *Group) Wait(ctx context.Context) bool {
	select {
	case <-g.waited():
		return true
	case <-ctx.Done():
		return false
	}
}

// waited returns a channel that is closed once no part runs.
func (g *Group) waited() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = make(chan struct{})
	}
	ended := g.ended
	if len(g.running) == 0 {
		close(g.ended)
		g.ended = nil
	}
	return ended
}
