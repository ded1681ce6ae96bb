// Package parts runs named parts of a program in parallel, and reports which have not ended.
package parts

import (
	"context"
	"slices"
	"sync"
)

// Group is a set of parts. The zero Group is empty and ready to use. It is safe for concurrent use.
type Group struct {
	mu     sync.Mutex
	parts  []*Part
	active int           // parts that have not returned
	ended  chan struct{} // closed when no part is active; nil: nobody waits
}

// Part is a part of a Group.
type Part struct{ names func() []string }

// Go runs a part in a goroutine of its own.
func (g *Group) Go(name string, run func()) {
	g.GoNamed(func() []string { return []string{name} }, run)
}

// GoNamed runs a part that consists of others: names returns those that have not ended. It is called while
// run runs.
func (g *Group) GoNamed(names func() []string, run func()) {
	p := g.Watch(names)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active++
	go func() {
		defer g.end(p)
		run()
	}()
}

// Watch adds parts that are named and not waited for: names returns those that have not ended.
func (g *Group) Watch(names func() []string) *Part {
	p := &Part{names}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parts = append(g.parts, p)
	return p
}

func (g *Group) end(p *Part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parts = slices.DeleteFunc(g.parts, func(other *Part) bool { return other == p })
	g.active--
	g.announce()
}

// announce tells who waits when no part is active. The lock is held.
func (g *Group) announce() {
	if g.active == 0 && g.ended != nil {
		close(g.ended)
		g.ended = nil
	}
}

// Running returns the names of the parts that have not ended, sorted.
func (g *Group) Running() []string {
	g.mu.Lock()
	all := slices.Clone(g.parts)
	g.mu.Unlock()
	var out []string
	for _, p := range all {
		out = append(out, p.names()...)
	}
	slices.Sort(out)
	return out
}

// Wait waits until all parts have returned, those that start meanwhile included, or the context ends, and reports
// whether all have returned.
func (g *Group) Wait(ctx context.Context) bool {
	select {
	case <-g.waited():
		return true
	case <-ctx.Done():
		return false
	}
}

// waited returns a channel that is closed once no part is active.
func (g *Group) waited() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = make(chan struct{})
	}
	ended := g.ended
	g.announce()
	return ended
}
