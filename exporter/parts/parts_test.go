package parts

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestGroup_NamesWhatHasNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		if !g.Wait(t.Context()) || g.Running() != nil {
			t.Errorf("an empty group runs %v", g.Running())
		}
		g.Go("short", func() { time.Sleep(time.Second) })
		g.Go("long", func() { time.Sleep(time.Hour) })
		feed := []string{"feed b", "feed a"}
		g.GoNamed(func() []string { return feed }, func() { time.Sleep(time.Minute) })
		g.Watch(func() []string { return []string{"feed c"} }) // which is never waited for
		for _, c := range []struct {
			patience time.Duration
			want     []string
		}{
			{0, []string{"feed a", "feed b", "feed c", "long", "short"}},
			{2 * time.Second, []string{"feed a", "feed b", "feed c", "long"}},
			{time.Minute, []string{"feed c", "long"}},
			{2 * time.Hour, []string{"feed c"}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			ended := g.Wait(ctx)
			cancel()
			if got := g.Running(); !slices.Equal(got, c.want) || ended != (len(c.want) == 1) {
				t.Errorf("after %v more: ended %v, running %v; want %v", c.patience, ended, got, c.want)
			}
		}
	})
}

// A part may start another; all waiters wait for both.
func TestGroup_WaitsForPartsThatPartsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		start := time.Now()
		g.Go("first", func() {
			time.Sleep(time.Second)
			g.Go("second", func() { time.Sleep(time.Second) })
		})
		waited := make(chan time.Duration)
		for range 2 {
			go func() { g.Wait(context.Background()); waited <- time.Since(start) }()
		}
		for range 2 {
			if took := <-waited; took != 2*time.Second {
				t.Errorf("waited %v, want 2 s", took)
			}
		}
	})
}
