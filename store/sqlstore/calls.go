package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
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
	err = s.group.do(ctx, func(t *tx) error {
		if fresh { // as far as the snapshot knew
			decide(nil, t.now, t.floor)
			if inserted, err := t.insert(&reply.Record); inserted || err != nil {
				return err
			}
		}
		stored := identity(&c)
		found, _, err := t.session.read(&stored)
		if err != nil {
			return err
		}
		return t.write(&reply.Record, decide(orNil(&stored, found), t.now, t.floor), "update", updateArgs)
	})
	if err != nil {
		return driver.Claimed{}, err
	}
	return reply, nil
}

// insert makes a Processing record and reports whether there was no row.
func (t *tx) insert(r *driver.Record) (inserted bool, err error) {
	n, err := t.session.exec("insert", insertArgs(r)...)
	return n == 1, err
}

// write applies w, an update by the statement that fits. The row was read in this transaction.
func (t *tx) write(r *driver.Record, w state.Write, update string, args func(*driver.Record) []sqldriver.Value) error {
	if w == state.Insert {
		if _, err := t.insert(r); err != nil || r.Status == driver.Processing {
			return err
		}
		w = state.Update // to the end with which it was read as missing
	}
	if w == state.Keep {
		return nil
	}
	_, err := t.session.exec(update, args(r)...)
	return err
}

// Renew implements driver.Store.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	return s.group.do(ctx, func(t *tx) error {
		stored := driver.Record{ID: rn.ID}
		found, _, err := t.session.read(&stored)
		if err != nil {
			return err
		}
		next, ok := state.Renew(orNil(&stored, found), &rn, t.now)
		if !ok {
			return driver.ErrLeaseLost
		}
		_, err = t.session.exec("renew", bindTime(next.LeaseUntil), bindTime(next.UpdatedAt), next.ID[:])
		return err
	})
}

// Finish implements driver.Store.
func (s *Store) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	if err := f.Check(); err != nil {
		return driver.Finished{}, err
	}
	var reply driver.Finished
	err := s.group.do(ctx, func(t *tx) error {
		stored := identity(&f.Claim)
		found, _, err := t.session.read(&stored)
		if err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Finish(orNil(&stored, found), &f, t.now)
		reply.Now = t.now
		return t.write(&reply.Record, w, "finish", finishArgs)
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
	err := s.group.do(ctx, func(t *tx) error {
		cur, _, err := t.session.get(st.ID)
		if err != nil {
			return err
		}
		if cur == nil {
			return driver.ErrNotFound
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Settle(cur, &st, t.now)
		reply.Now = t.now
		return t.write(&reply.Record, w, "update", updateArgs)
	})
	if err != nil {
		return driver.Settled{}, err
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
