package sqlstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// gathered holds the group's first batch until all others wait.
func TestGroupCommitsTogetherWhatWaits(t *testing.T) {
	t.Parallel()
	const n = 64
	var batches, sizes atomic.Int64
	first, release := make(chan struct{}), make(chan struct{})
	g := &group{}
	g.run = func(batch []*rider) {
		sizes.Add(int64(len(batch)))
		if batches.Add(1) == 1 {
			close(first)
			<-release
		}
		for _, r := range batch {
			r.err = r.work(t.Context(), nil)
		}
	}
	var wg sync.WaitGroup
	do := func() {
		if err := g.do(t.Context(), work(func() error { return nil })); err != nil {
			t.Error(err)
		}
	}
	wg.Go(do)
	<-first
	for range n {
		wg.Go(do)
	}
	for waiting := 0; waiting < n; {
		g.mu.Lock()
		waiting = len(g.waiting)
		g.mu.Unlock()
	}
	close(release)
	wg.Wait()
	if batches.Load() != 2 || sizes.Load() != n+1 {
		t.Fatalf("%d riders in %d batches", sizes.Load(), batches.Load())
	}
	do()
	if batches.Load() != 3 {
		t.Fatalf("alone, a call goes straight: %d batches", batches.Load())
	}
	if g.busy || len(g.waiting) != 0 {
		t.Fatal("the group is not at rest")
	}
}

func TestGroupCallerLeavesTheQueue(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	g := &group{run: func(batch []*rider) {
		for _, r := range batch {
			r.err = r.work(t.Context(), nil)
		}
	}}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = g.do(t.Context(), work(func() error { close(entered); <-release; return nil }))
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.do(ctx, work(func() error { t.Error("it ran"); return nil })); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	wg.Wait()
	if g.busy {
		t.Fatal("the group is not at rest")
	}
}

func TestGroupOutlivesAPanic(t *testing.T) {
	t.Parallel()
	g := &group{run: func(batch []*rider) {
		for _, r := range batch {
			r.err = r.work(t.Context(), nil)
		}
	}}
	if err := g.do(t.Context(), work(func() error { panic("work") })); err == nil {
		t.Error("a panic was a success")
	}
	if err := g.do(t.Context(), work(func() error { return nil })); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

// work is a call that needs no connection.
func work(f func() error) call {
	return call{work: func(context.Context, conn) error { return f() }}
}
