// Package janitor keeps a store in order: it settles attempts that died.
package janitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/driver"
)

// Store is what a sweep needs.
type Store interface {
	driver.Store
	driver.Sweeper
}

// Options of Sweep. Nil and the zero value are valid.
type Options struct {
	Page  int           // rows looked at per page. Zero: 1,000
	Pause time.Duration // between pages, so that a sweep never crowds out callers. Zero: 5 ms
}

// Report is what a sweep saw and did.
type Report struct {
	Seen       int           // records
	Processing int           // still running, after the sweep
	Oldest     time.Duration // how long the oldest has been running
	Unknown    int           // outcomes that wait for a resolver or a person, after the sweep
	Repeatable int           // lapsed attempts that may run again
	Unclear    int           // lapsed attempts whose outcome became unknown
}

// Sweep walks the store once and settles every lapsed attempt by what its record says. It is safe to run in several
// processes: each settlement is a compare-and-set.
func Sweep(ctx context.Context, s Store, opts *Options) (Report, error) {
	o := Options{Page: 1000, Pause: 5 * time.Millisecond}
	if opts != nil {
		if opts.Page > 0 {
			o.Page = opts.Page
		}
		if opts.Pause > 0 {
			o.Pause = opts.Pause
		}
	}
	var rep Report
	for after := ""; ; {
		page, err := s.Scan(ctx, driver.Scan{After: after, Limit: o.Page})
		if err != nil {
			return rep, fmt.Errorf("janitor: scan: %w", err)
		}
		for i := range page.Snapshots {
			if err := rep.add(ctx, s, &page.Snapshots[i]); err != nil {
				return rep, err
			}
		}
		if after = page.Next; after == "" {
			return rep, nil
		}
		select {
		case <-time.After(o.Pause):
		case <-ctx.Done():
			return rep, context.Cause(ctx)
		}
	}
}

func (rep *Report) add(ctx context.Context, s Store, snap *driver.Snapshot) error {
	r := &snap.Record
	rep.Seen++
	if r.Status == driver.Processing {
		// A cheap look first: a lease that is good needs no call, and the store decides in any case.
		if r.LeaseUntil.IsZero() || snap.Now.Before(r.LeaseUntil) {
			rep.running(snap)
			return nil
		}
		settled, err := s.Settle(ctx, driver.Settlement{ID: r.ID, Fence: r.Fence})
		if errors.Is(err, driver.ErrNotFound) {
			return nil // it ended meanwhile, and was purged
		}
		if err != nil {
			return fmt.Errorf("janitor: settle: %w", err)
		}
		switch {
		case !settled.Applied:
			rep.running(snap)
		case settled.Record.Failure == driver.Unknown:
			rep.Unclear++
			rep.Unknown++
		default:
			rep.Repeatable++
		}
		return nil
	}
	if r.Unclear() {
		rep.Unknown++
	}
	return nil
}

func (rep *Report) running(snap *driver.Snapshot) {
	rep.Processing++
	rep.Oldest = max(rep.Oldest, snap.Now.Sub(snap.Record.ClaimedAt))
}
