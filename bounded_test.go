package onceward

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestBounded: a store can't tell it from context.WithTimeout(context.WithoutCancel(parent), d).
func TestBounded(t *testing.T) {
	t.Parallel()
	type key struct{}
	parent, cancelParent := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
	cancelParent()
	for name, build := range map[string]func(time.Duration) (context.Context, func()){
		"ours": func(d time.Duration) (context.Context, func()) { b := newBounded(parent, d); return b, b.cancel },
		"std": func(d time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), d)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := build(time.Second)
				child, cancelChild := context.WithCancel(ctx)
				defer cancelChild()
				if cause := context.Cause(ctx); cause != nil {
					t.Errorf("the parent's end shows: %v", cause)
				}
				if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Second || ctx.Err() != nil || ctx.Value(key{}) != "trace" {
					t.Errorf("deadline %v %v, %v, %v", at, ok, ctx.Err(), ctx.Value(key{}))
				}
				start := time.Now()
				<-child.Done()
				if time.Since(start) != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
					t.Errorf("ended after %v: %v, %v", time.Since(start), ctx.Err(), child.Err())
				}
				if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("the parent's cause shows: %v", cause)
				}
				cancel()
				<-ctx.Done()
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("cancelled after its end: %v", ctx.Err())
				}

				ctx, cancel = build(time.Minute)
				cancel()
				<-ctx.Done() // asked for after the end
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("cancelled: %v", ctx.Err())
				}

				ctx, cancel = build(time.Second) // nobody asks for Done
				<-time.After(2 * time.Second)
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("unwatched: %v", ctx.Err())
				}
				<-ctx.Done()
				cancel()
			})
		})
	}
}
