// Package janitor keeps a store in order: it settles attempts that died, asks what became of outcomes that are unknown, and
// drops what has expired.
package janitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/onceward/onceward/driver"
)

// Store is what upkeep needs of a store.
type Store interface {
	driver.Store
	driver.Sweeper
	driver.Purger
}

// Resolver knows whom to ask about records whose outcome is unknown: *onceward.Guard, for the operations that it defines.
type Resolver interface {
	// Resolve says whether somebody was asked, and whether the answer settled the record. An error means that nobody answered.
	Resolve(ctx context.Context, snap driver.Snapshot) (asked, settled bool, err error)
}

// Options of Sweep and Run. Nil and the zero value are valid.
type Options struct {
	Page  int           // rows looked at per page, at most driver.MaxPurge. Zero: 1,000
	Pause time.Duration // between pages, so that a sweep never crowds out callers. Zero: 5 ms

	// Resolver is asked about outcomes that are unknown. Nil: they wait for a person.
	Resolver Resolver
	// AskTimeout bounds one question. Zero: 10 s.
	AskTimeout time.Duration
	// AskAgain is when a question is put again that brought no answer; the time doubles each time, up to an hour. Zero: 10 s.
	AskAgain time.Duration
	// AlarmAge is for how long an outcome may be unknown before Report.Overdue counts it. What somebody can be asked about
	// counts only after an answer: while nobody answers, it is they who are late. Zero: an hour.
	AlarmAge time.Duration

	// KeepExpired leaves expired records where they are. They count for nothing, and take room.
	KeepExpired bool
	// Window is when expired records are dropped, by the store's clock: "02:00-05:00", also over midnight. Dead attempts are
	// settled, and questions put, at any time. Empty: always.
	Window string
	// Location is the window's. Nil: UTC.
	Location *time.Location

	// Every is the time from one sweep's start to the next one's. Zero: 5 s. Of Run only.
	Every time.Duration
	// Observer gets the report of every sweep, and the error that cut it short. Nil: only the log tells. Of Run only.
	Observer func(Report, error)
	// Logger tells what was settled and what could not be done. Nil: slog.Default().
	Logger *slog.Logger
}

// Check returns what is wrong with the options: a page that is too large, a window that can't be read.
func (o *Options) Check() error {
	_, _, err := o.filled()
	return err
}

// filled returns the options with what is left out.
func (o *Options) filled() (Options, window, error) {
	c := Options{}
	if o != nil {
		c = *o
	}
	c.Page = or(c.Page, driver.MaxPurge)
	c.Pause = or(c.Pause, 5*time.Millisecond)
	c.AskTimeout = or(c.AskTimeout, 10*time.Second)
	c.AskAgain = or(c.AskAgain, 10*time.Second)
	c.AlarmAge = or(c.AlarmAge, time.Hour)
	c.Every = or(c.Every, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Page > driver.MaxPurge {
		return c, window{}, fmt.Errorf("janitor: Page is %d, at most %d", c.Page, driver.MaxPurge)
	}
	w, err := parseWindow(c.Window, c.Location)
	return c, w, err
}

func or[T int | time.Duration](v, zero T) T {
	if v <= 0 {
		return zero
	}
	return v
}

// Sweep walks the store once: it settles every lapsed attempt by what its record says, drops what has expired, and asks about
// what is unknown. It is safe to run in several processes: each change is a compare-and-set.
func Sweep(ctx context.Context, s Store, opts *Options) (Report, error) {
	o, w, err := opts.filled()
	if err != nil {
		return Report{}, err
	}
	j := &sweeper{store: s, o: &o, window: w, asker: newAsker(&o)}
	rep, err := j.sweep(ctx, func(context.Context) error { return nil })
	j.asker.wait()
	j.asker.tell(&rep)
	return rep, err
}

// Run sweeps at every interval until ctx ends. Of all that run on a store one sweeps, which holds a lease in the store; it is
// another's turn when it ends or dies. Errors of the store are told of, and do not end it.
func Run(ctx context.Context, s Store, opts *Options) error {
	o, w, err := opts.filled()
	if err != nil {
		return err
	}
	j := &sweeper{store: s, o: &o, window: w, asker: newAsker(&o)}
	defer j.asker.wait()
	l := newLeader(s, &o)
	defer l.resign(ctx)
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		leads, err := l.lead(ctx)
		var rep Report
		if leads && err == nil {
			rep, err = j.sweep(ctx, l.hold)
			j.asker.tell(&rep)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case leads || err != nil:
			j.told(ctx, &rep, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// told brings a report to those who want it.
func (j *sweeper) told(ctx context.Context, rep *Report, err error) {
	log := j.o.Logger
	if err != nil && !errors.Is(err, driver.ErrLeaseLost) {
		log.LogAttrs(ctx, slog.LevelWarn, "onceward can't sweep", slog.Any("error", err))
	}
	if rep.Repeatable+rep.Unclear > 0 {
		log.LogAttrs(ctx, slog.LevelWarn, "onceward settled dead attempts", slog.Int("repeatable", rep.Repeatable), slog.Int("unknown", rep.Unclear))
	}
	if rep.Resolved > 0 {
		log.LogAttrs(ctx, slog.LevelInfo, "onceward resolved unknown outcomes", slog.Int("asked", rep.Asked), slog.Int("resolved", rep.Resolved))
	}
	if rep.Overdue > j.overdue {
		log.LogAttrs(ctx, slog.LevelWarn, "onceward: outcomes have been unknown for too long: settle them with records resolve",
			slog.Int("overdue", rep.Overdue), slog.Duration("alarm_age", j.o.AlarmAge), slog.Duration("oldest", rep.OldestUnknown))
	}
	if err == nil {
		j.overdue = rep.Overdue
	}
	if j.o.Observer != nil {
		j.o.Observer(*rep, err)
	}
}
