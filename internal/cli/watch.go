package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/janitor"
)

// watched is a store whose outcomes that become unknown are told of, each once: somebody has to find out about it. It
// stands before the store because that is where all ways to an unknown outcome meet: an attempt's end, a claim that
// finds a dead attempt, and the sweep.
type watched struct {
	janitor.Store
	log *slog.Logger

	mu   sync.Mutex
	told map[outcome]bool
}

// outcome is one of a record's: its next one has another fence.
type outcome struct {
	id    driver.ID
	fence int64
}

func watch(s janitor.Store, log *slog.Logger) *watched {
	return &watched{Store: s, log: log, told: map[outcome]bool{}}
}

func (w *watched) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	got, err := w.Store.Claim(ctx, c)
	if noRoom(err) {
		err = fmt.Errorf("%w: %w", driver.ErrStoreFull, err)
	}
	if err == nil && got.Verdict == driver.OutcomeOpen && got.Record.UpdatedAt.Equal(got.Now) { // just now, by this claim as a rule
		w.tell(ctx, &got.Record)
	}
	return got, err
}

// noRoom reports whether SQLite could not write its file. On a full disk the driver says it in these words, and not that the
// disk is full; as the write failed, there was no commit.
func noRoom(err error) bool {
	return errors.Is(err, sqlite3.IOERR_WRITE) && !errors.Is(err, driver.ErrStoreFull)
}

func (w *watched) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	got, err := w.Store.Finish(ctx, f)
	if err == nil && got.Applied && f.Outcome.Failure == driver.Unknown {
		w.tell(ctx, &got.Record)
	}
	return got, err
}

func (w *watched) Settle(ctx context.Context, s driver.Settlement) (driver.Settled, error) {
	got, err := w.Store.Settle(ctx, s)
	if err == nil && got.Applied && got.Record.Failure == driver.Unknown {
		w.tell(ctx, &got.Record)
	}
	return got, err
}

func (w *watched) tell(ctx context.Context, r *driver.Record) {
	if !w.first(outcome{r.ID, r.Fence}) {
		return
	}
	w.log.LogAttrs(ctx, slog.LevelWarn, "onceward: an outcome became unknown: settle it with records resolve",
		slog.String("operation", r.Operation), slog.String("key", digestOf(r.Key)), slog.String("id", r.ID.String()),
		slog.String("request_id", gateway.RequestID(ctx)), slog.String("reason", r.Error))
}

// first reports whether an outcome was not told of yet. A claim within the clock's tick can't be told from the one that
// made it unknown, so a short memory is enough.
func (w *watched) first(o outcome) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[o] {
		return false
	}
	if len(w.told) >= 1024 {
		clear(w.told)
	}
	w.told[o] = true
	return true
}
