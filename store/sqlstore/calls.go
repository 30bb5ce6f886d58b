package sqlstore

import (
	"context"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Claim implements driver.Store. One statement makes a claim of a missing record, and on PostgreSQL reads the record that is
// there. On SQLite what needs no write, replays first of all, is answered from a snapshot and never waits for the writer.
func (s *Store) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	if err := c.Check(); err != nil {
		return driver.Claimed{}, err
	}
	reply := driver.Claimed{Store: s.id}
	decide := func(cur *driver.Record, now time.Time, floor int64) (w state.Write) {
		reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, &c, now, floor)
		reply.Now = now
		return w
	}
	first := func(ctx context.Context, on conn) (done bool, err error) {
		got, err := s.begin(ctx, on, &c)
		switch {
		case err != nil || !got.inserted && !got.found:
			return false, err
		case got.inserted:
			decide(nil, got.now, got.fence-1)
			return true, nil
		}
		err = s.write(ctx, on, &got.record, &reply.Record, decide(&got.record, got.now, 0))
		return err == nil, err
	}
	if s.peeks {
		stored := identity(&c)
		err := s.runner.read(ctx, func(ctx context.Context, on conn) error {
			found, now, err := s.readRow(ctx, on, &stored)
			if found {
				first = nil
			}
			if found && err == nil && decide(&stored, now, 0) != state.Keep {
				reply.Verdict = 0 // a snapshot decides no write
			}
			return err
		})
		if err != nil || reply.Verdict != 0 {
			return reply, err
		}
	}
	err := s.runner.write(ctx, call{quick: first, work: func(ctx context.Context, on conn) error {
		stored := identity(&c)
		found, now, floor, err := s.read(ctx, on, &stored)
		if err != nil {
			return err
		}
		return s.write(ctx, on, orNil(&stored, found), &reply.Record, decide(orNil(&stored, found), now, floor))
	}})
	if err != nil {
		return driver.Claimed{}, err
	}
	return reply, nil
}

// Renew implements driver.Store. Its one statement decides as state.Renew does.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	held := false
	err := s.runner.write(ctx, call{beat: true, quick: func(ctx context.Context, on conn) (done bool, err error) {
		held, err = s.renew(ctx, on, &rn)
		return true, err
	}})
	if err == nil && !held {
		err = driver.ErrLeaseLost
	}
	return err
}

// Finish implements driver.Store.
func (s *Store) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	if err := f.Check(); err != nil {
		return driver.Finished{}, err
	}
	var reply driver.Finished
	err := s.runner.write(ctx, call{
		// What an end makes of a missing record, it makes of the one that its own claim left: the statement sees to that.
		quick: func(ctx context.Context, on conn) (done bool, err error) {
			done, now, err := s.finish(ctx, on, &f)
			if done && err == nil {
				reply.Record, reply.Applied, _ = state.Finish(nil, &f, now)
				reply.Now = now
			}
			return done, err
		},
		work: func(ctx context.Context, on conn) error {
			stored := identity(&f.Claim)
			found, now, _, err := s.read(ctx, on, &stored)
			if err != nil {
				return err
			}
			if s.bound && !found {
				// The claim was this transaction's own: it was rolled back, and what is written now would commit by itself.
				return driver.ErrLeaseLost
			}
			var w state.Write
			reply.Record, reply.Applied, w = state.Finish(orNil(&stored, found), &f, now)
			reply.Now = now
			return s.write(ctx, on, orNil(&stored, found), &reply.Record, w)
		},
	})
	if err != nil {
		return driver.Finished{}, err
	}
	return reply, nil
}

// Settle implements driver.Store.
func (s *Store) Settle(ctx context.Context, st driver.Settlement) (driver.Settled, error) {
	if err := st.Check(); err != nil {
		return driver.Settled{}, err
	}
	var reply driver.Settled
	found := false
	err := s.runner.write(ctx, call{work: func(ctx context.Context, on conn) error {
		cur, now, err := s.get(ctx, on, st.ID)
		if found = cur != nil; !found || err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Settle(cur, &st, now)
		reply.Now = now
		return s.write(ctx, on, cur, &reply.Record, w)
	}})
	switch {
	case err != nil:
		return driver.Settled{}, err
	case !found:
		return driver.Settled{}, driver.ErrNotFound
	}
	return reply, nil
}

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, id driver.ID) (driver.Snapshot, error) {
	var rec *driver.Record
	var now time.Time
	err := s.runner.read(ctx, func(ctx context.Context, on conn) (err error) {
		rec, now, err = s.get(ctx, on, id)
		return err
	})
	if err != nil {
		return driver.Snapshot{}, err
	}
	if rec == nil {
		return driver.Snapshot{}, driver.ErrNotFound
	}
	return driver.Snapshot{Record: *rec, Now: now}, nil
}

// identity is what a claim knows of its record. The ID is a digest of all the rest, so a record under it has the same.
func identity(c *driver.Claim) driver.Record {
	return driver.Record{ID: c.ID, Scope: c.Scope, Operation: c.Operation, Key: c.Key}
}

// orNil is how package state says that there is no record.
func orNil(r *driver.Record, found bool) *driver.Record {
	if !found {
		return nil
	}
	return r
}
