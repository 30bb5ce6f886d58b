package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// group commits what waits together. There is one writer at a time: a caller that finds none runs its own work straight
// through; those who come meanwhile queue, and when the writer is done the first of them runs all that waits in one
// transaction. There is no timer and no goroutine: alone, a call goes straight. A caller is answered only after COMMIT
// returned.
type group struct {
	mu      sync.Mutex
	busy    bool
	waiting []*rider
	closed  chan struct{}        // nil: open; closed when the last batch is answered
	run     func(batch []*rider) // runs and answers by rider.err
}

// maxBatch bounds a transaction, and so how long its first rider waits for the last.
const maxBatch = 256

// rider is one call.
type rider struct {
	call
	err  error
	turn chan []*rider // nil: answered; otherwise lead this batch, which begins with the receiver
}

// alone tries what needs no transaction. A panic is its rider's error: the others have done nothing.
func (r *rider) alone(on conn) (done bool, err error) {
	defer caught(&err)
	return r.try(context.Background(), on)
}

// inside runs the call in a transaction.
func (r *rider) inside(on conn) (err error) {
	defer caught(&err)
	return r.run(context.Background(), on)
}

func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("onceward: a store call panicked: %v", p)
	}
}

// do runs a call by itself or in a transaction with others. When ctx ends before its batch began, nothing was done.
func (g *group) do(ctx context.Context, c call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &rider{call: c}
	g.mu.Lock()
	if g.closed != nil {
		g.mu.Unlock()
		return errClosed
	}
	if !g.busy {
		g.busy = true
		g.mu.Unlock()
		g.lead([]*rider{r})
		return r.err
	}
	r.turn = make(chan []*rider, 1)
	g.waiting = append(g.waiting, r)
	g.mu.Unlock()

	select {
	case batch := <-r.turn:
		g.lead(batch)
	case <-ctx.Done():
		if g.drop(r) {
			return context.Cause(ctx)
		}
		g.lead(<-r.turn) // taken already: the answer is near
	}
	return r.err
}

// close, once, refuses further work and waits for what is queued.
func (g *group) close() {
	g.mu.Lock()
	g.closed = make(chan struct{})
	if !g.busy {
		close(g.closed)
	}
	g.mu.Unlock()
	<-g.closed
}

// drop takes r out of the queue, if it is still there.
func (g *group) drop(r *rider) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, r)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// lead runs a batch, answers its riders, and hands over to the first that waits. An empty batch is an answer.
func (g *group) lead(batch []*rider) {
	if len(batch) == 0 {
		return
	}
	func() {
		defer func() {
			if p := recover(); p != nil { // never leave the others waiting
				for _, r := range batch {
					r.err = fmt.Errorf("onceward: a store transaction panicked: %v", p)
				}
			}
		}()
		g.run(batch)
	}()
	for _, r := range batch[1:] {
		r.turn <- nil
	}
	if len(batch) > 1 {
		runtime.Gosched() // let the answered ask again, so that the next batch is full
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		if g.closed != nil {
			close(g.closed)
		}
		return
	}
	n := min(len(g.waiting), maxBatch)
	next := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	next[0].turn <- next
}
