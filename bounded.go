package onceward

import (
	"context"
	"sync"
	"time"
)

// bounded is a context with its parent's values, no cancellation of its parent's, and a deadline of its own. It does what
// context.WithTimeout(context.WithoutCancel(parent), d) does, but its timer is only started when somebody asks for Done:
// a store in memory never does, and every call pays for what it makes here.
type bounded struct {
	values   context.Context //nolint:containedctx // it is a context
	deadline time.Time

	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
	over  error
}

func newBounded(parent context.Context, d time.Duration) *bounded {
	return &bounded{values: parent, deadline: time.Now().Add(d)}
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
		if b.over != nil {
			close(b.done)
		} else {
			b.timer = time.AfterFunc(time.Until(b.deadline), func() { b.end(context.DeadlineExceeded) })
		}
	}
	return b.done
}

// Err implements context.Context.
func (b *bounded) Err() error {
	b.mu.Lock()
	over := b.over
	b.mu.Unlock()
	if over == nil && !time.Now().Before(b.deadline) {
		b.end(context.DeadlineExceeded)
		over = context.DeadlineExceeded
	}
	return over
}

// Value implements context.Context.
func (b *bounded) Value(k any) any { return context.WithoutCancel(b.values).Value(k) }

// cancel ends the context. It must be called, as every cancel function.
func (b *bounded) cancel() { b.end(context.Canceled) }

func (b *bounded) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over != nil {
		return
	}
	b.over = err
	if b.timer != nil {
		b.timer.Stop()
	}
	if b.done != nil {
		close(b.done)
	}
}
