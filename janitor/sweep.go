package janitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Report is what a sweep saw and did. The janitors' own record counts as Seen only.
type Report struct {
	Seen    int // rows looked at
	Damaged int // rows that could not be read

	Processing int           // still running, after the sweep
	Oldest     time.Duration // how long the oldest has been running
	Repeatable int           // lapsed attempts that may run again
	Unclear    int           // lapsed attempts whose outcome became unknown

	Unknown       int           // outcomes that wait for an answer or a person
	OldestUnknown time.Duration // how long the oldest has been unknown
	Overdue       int           // unknown for longer than the alarm age, see Options.AlarmAge
	Asked         int           // questions that were put since the report before
	Unanswered    int           // of them, those that nobody answered
	Resolved      int           // of them, those whose answer settled a record

	Purged  int           // expired records that were dropped
	Expired int           // expired records that are still there, after the sweep
	Lag     time.Duration // for how long the oldest expired record had been so when it was seen
	Took    time.Duration // the sweep
}

// sweeper walks a store, again and again.
type sweeper struct {
	store   Store
	o       *Options
	window  window
	asker   *asker
	overdue int // of the sweep before
}

// sweep walks the store once. between is called between pages: its error ends the walk.
func (j *sweeper) sweep(ctx context.Context, between func(context.Context) error) (rep Report, err error) {
	start := time.Now()
	defer func() { rep.Took = time.Since(start) }()
	for after := ""; ; {
		page, err := j.store.Scan(ctx, driver.Scan{After: after, Limit: j.o.Page, Which: driver.Due})
		if err != nil {
			return rep, fmt.Errorf("janitor: scan: %w", err)
		}
		rep.Seen += page.Seen
		rep.Damaged += page.Damaged
		if err := j.page(ctx, &rep, page.Snapshots); err != nil {
			return rep, err
		}
		if after = page.Next; after == "" {
			j.asker.forget()
			return rep, nil
		}
		select {
		case <-time.After(j.o.Pause):
		case <-ctx.Done():
			return rep, context.Cause(ctx)
		}
		if err := between(ctx); err != nil {
			return rep, err
		}
	}
}

func (j *sweeper) page(ctx context.Context, rep *Report, page []driver.Snapshot) error {
	var expired driver.Purge
	var now time.Time
	for i := range page {
		snap := &page[i]
		r := &snap.Record
		if r.Operation == ownOperation {
			continue
		}
		now = snap.Now
		switch {
		case r.Status == driver.Processing:
			if err := j.running(ctx, rep, snap); err != nil {
				return err
			}
		case r.Unclear():
			j.unclear(ctx, rep, snap)
		case state.Expired(r, snap.Now):
			rep.Expired++
			rep.Lag = max(rep.Lag, snap.Now.Sub(r.ExpiresAt))
			expired.IDs, expired.Floor = append(expired.IDs, r.ID), max(expired.Floor, r.Fence)
		}
	}
	if len(expired.IDs) == 0 || j.o.KeepExpired || !j.window.open(now) {
		return nil
	}
	n, err := j.store.Purge(ctx, expired)
	rep.Purged += n
	rep.Expired -= n
	switch {
	case errors.Is(err, driver.ErrLocked):
		return nil // somebody's transaction holds one of them: the next sweep comes again
	case err != nil:
		return fmt.Errorf("janitor: purge: %w", err)
	}
	return nil
}

// running settles an attempt that died. A cheap look comes first: a lease that is good needs no call, and the store decides in
// any case.
func (j *sweeper) running(ctx context.Context, rep *Report, snap *driver.Snapshot) error {
	r := &snap.Record
	if r.LeaseUntil.IsZero() || snap.Now.Before(r.LeaseUntil) {
		rep.running(snap)
		return nil
	}
	settled, err := j.store.Settle(ctx, driver.Settlement{ID: r.ID, Fence: r.Fence})
	switch {
	case errors.Is(err, driver.ErrNotFound):
		return nil // it ended meanwhile, and was purged
	case errors.Is(err, driver.ErrLocked):
		rep.running(snap) // somebody's transaction holds it
	case err != nil:
		return fmt.Errorf("janitor: settle: %w", err)
	case !settled.Applied:
		rep.running(snap)
	case settled.Record.Unclear():
		rep.Unclear++
		rep.Unknown++
	default:
		rep.Repeatable++
	}
	return nil
}

func (rep *Report) running(snap *driver.Snapshot) {
	rep.Processing++
	rep.Oldest = max(rep.Oldest, snap.Now.Sub(snap.Record.ClaimedAt))
}

func (j *sweeper) unclear(ctx context.Context, rep *Report, snap *driver.Snapshot) {
	age := snap.Now.Sub(snap.Record.UpdatedAt)
	rep.Unknown++
	rep.OldestUnknown = max(rep.OldestUnknown, age)
	if j.asker.about(ctx, snap) && age >= j.o.AlarmAge {
		rep.Overdue++
	}
}
