package sqlstore

import (
	"context"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Claim implements driver.Store. What needs no write, replays first of all, is answered from a snapshot and never
// waits for the writer; everything else is decided afresh in a transaction that nobody else can write beside.
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
	stored, fresh := identity(&c), false
	err := s.readers.use(ctx, func(snapshot *session) error {
		found, now, err := snapshot.read(&stored)
		fresh = !found
		if found && decide(&stored, now, 0) != state.Keep {
			reply.Verdict = 0 // a snapshot decides no write
		}
		return err
	})
	if err != nil || reply.Verdict != 0 {
		return reply, err
	}
	insert := func(t *tx) (done bool, err error) {
		decide(nil, t.now, 0)
		return t.insert(&reply.Record, reply.Record.Fence)
	}
	if !fresh {
		insert = nil
	}
	err = s.group.do(ctx, insert, func(t *tx) error {
		stored := identity(&c)
		found, floor, err := t.readWithFloor(&stored)
		if err != nil {
			return err
		}
		return t.write(&reply.Record, decide(orNil(&stored, found), t.now, floor))
	})
	if err != nil {
		return driver.Claimed{}, err
	}
	return reply, nil
}

// Renew implements driver.Store. Its one statement decides as state.Renew does.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	held := false
	err := s.group.do(ctx, func(t *tx) (done bool, err error) {
		held, err = t.changes("renew", bindTime(t.now.Add(rn.Lease)), bindTime(t.now), rn.ID[:], rn.Owner[:], rn.Fence)
		return true, err
	}, nil)
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
	err := s.group.do(ctx, func(t *tx) (done bool, err error) {
		// What an end makes of a missing record, it makes of the one that its own claim left: the statement sees to that.
		reply.Record, reply.Applied, _ = state.Finish(nil, &f, t.now)
		reply.Now = t.now
		return t.changes("finish", finishArgs(&reply.Record, f.Claim.Owner)...)
	}, func(t *tx) error {
		stored := identity(&f.Claim)
		found, _, err := t.session.read(&stored)
		if err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Finish(orNil(&stored, found), &f, t.now)
		reply.Now = t.now
		return t.write(&reply.Record, w)
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
	err := s.group.do(ctx, nil, func(t *tx) error {
		cur, _, err := t.session.get(st.ID)
		if found = cur != nil; !found || err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Settle(cur, &st, t.now)
		reply.Now = t.now
		return t.write(&reply.Record, w)
	})
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
	err := s.readers.use(ctx, func(snapshot *session) (err error) {
		rec, now, err = snapshot.get(id)
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
