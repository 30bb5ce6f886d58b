package janitor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
)

// asker puts questions beside the sweeps, a few at a time: somebody who does not answer must not hold up the settling of dead
// attempts. What it knows of each is in memory only: after a restart it asks at once.
type asker struct {
	o    *Options
	free chan struct{} // a place for each question that runs
	wg   sync.WaitGroup

	mu                          sync.Mutex
	files                       map[driver.ID]*file
	asked, unanswered, resolved int // since the last report
}

// file is what is known of the questions about one outcome.
type file struct {
	fence    int64
	seen     bool // in this sweep
	running  bool
	nobody   bool          // there is nobody to ask, or not yet
	answered bool          // the last question was, with no news
	wait     time.Duration // before the next question
	next     time.Time
}

const (
	askers     = 8
	askAgainIn = time.Hour // at most
)

func newAsker(o *Options) *asker {
	return &asker{o: o, free: make(chan struct{}, askers), files: map[driver.ID]*file{}}
}

// about asks about a record, unless it was asked about lately, and reports whether it is known to be a person's: there is
// nobody to ask, or they answered and don't know.
func (a *asker) about(ctx context.Context, snap *driver.Snapshot) (persons bool) {
	if a.o.Resolver == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.files[snap.Record.ID]
	if f == nil || f.fence != snap.Record.Fence {
		f = &file{fence: snap.Record.Fence, wait: a.o.AskAgain}
		a.files[snap.Record.ID] = f
	}
	f.seen = true
	if !f.running && !time.Now().Before(f.next) {
		select {
		case a.free <- struct{}{}:
			f.running = true
			a.wg.Go(func() { a.ask(ctx, f, *snap) })
		default: // all are busy: the next sweep comes again
		}
	}
	return f.nobody || f.answered
}

func (a *asker) ask(ctx context.Context, f *file, snap driver.Snapshot) {
	defer func() { <-a.free }()
	bounded, cancel := context.WithTimeout(ctx, a.o.AskTimeout)
	defer cancel()
	asked, settled, err := a.o.Resolver.Resolve(bounded, snap)
	a.mu.Lock()
	defer a.mu.Unlock()
	f.running = false
	if err != nil && ctx.Err() != nil {
		return // it was called off
	}
	f.nobody, f.answered = !asked && err == nil, asked && err == nil && !settled
	if f.nobody {
		return // it may be too early, or was resolved by somebody else: looking is cheap
	}
	f.next, f.wait = time.Now().Add(f.wait), min(2*f.wait, askAgainIn)
	a.asked++
	switch {
	case err != nil:
		a.unanswered++
		a.o.Logger.LogAttrs(ctx, slog.LevelWarn, "onceward got no answer about an unknown outcome",
			slog.String("operation", snap.Record.Operation), slog.String("id", snap.Record.ID.String()), slog.Any("error", err))
	case settled:
		a.resolved++
	}
}

// forget drops what a whole sweep has not seen any more.
func (a *asker) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, f := range a.files {
		if !f.seen && !f.running {
			delete(a.files, id)
		}
		f.seen = false
	}
}

// wait returns when no question runs.
func (a *asker) wait() { a.wg.Wait() }

// tell adds to a report what was asked since the one before.
func (a *asker) tell(rep *Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rep.Asked, rep.Unanswered, rep.Resolved = a.asked, a.unanswered, a.resolved
	a.asked, a.unanswered, a.resolved = 0, 0, 0
}
