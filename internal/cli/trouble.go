package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// trouble tells why store calls fail: callers only hear that they did. A store that is away fails at every call, so each
// kind of call is told of once in a while, with how many there were.
type trouble struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	calls  map[string]*failures
	failed time.Time // when a write last failed, with none that went well since
}

type failures struct {
	count int
	told  time.Time
}

const tellAgain = 10 * time.Second

func newTrouble(log *slog.Logger) *trouble {
	return &trouble{log: log, now: time.Now, calls: map[string]*failures{}}
}

// note takes a store call's event.
func (t *trouble) note(e onceward.Event) {
	if t.expected(e.Err) {
		if e.Outcome == "finish" && e.Err == nil { // a claim may have been answered without a write
			t.set(time.Time{})
		}
		return
	}
	if !errors.Is(e.Err, driver.ErrDamaged) { // that is one record
		t.set(t.now())
	}
	if n := t.count(e.Outcome); n > 0 {
		t.log.Warn("onceward: store calls fail", slog.String("call", e.Outcome), slog.String("code", string(codeOf(e.Err))),
			slog.Int("count", n), slog.Any("error", e.Err))
	}
}

// expected reports whether an error is no sign of a bad store.
func (*trouble) expected(err error) bool {
	return err == nil || errors.Is(err, driver.ErrLeaseLost) || errors.Is(err, driver.ErrTooLong) || errors.Is(err, driver.ErrLocked) ||
		errors.Is(err, context.Canceled)
}

func codeOf(err error) onceward.Code {
	switch {
	case errors.Is(err, driver.ErrStoreFull):
		return onceward.CodeStoreFull
	case errors.Is(err, driver.ErrDamaged):
		return onceward.CodeCorruptRecord
	}
	return onceward.CodeStoreUnavailable
}

func (t *trouble) set(failed time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = failed
}

// count counts a failure, and returns how many are to be told of now.
func (t *trouble) count(call string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	f := t.calls[call]
	if f == nil {
		f = &failures{}
		t.calls[call] = f
	}
	f.count++
	if !f.told.IsZero() && now.Sub(f.told) < tellAgain {
		return 0
	}
	n, f.count, f.told = f.count, 0, now
	return n
}

// recent reports whether writes failed a moment ago, and none has gone well since.
func (t *trouble) recent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.failed.IsZero() && t.now().Sub(t.failed) < tellAgain
}
