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
	cur, now, err := s.read(ctx, c.ID)
	if err != nil {
		return driver.Claimed{}, err
	}
	if cur != nil {
		var w state.Write
		if reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, &c, now, 0); w == state.Keep {
			reply.Now = now
			return reply, nil
		}
	}
	fresh := cur == nil // as far as the snapshot knows
	err = s.group.do(ctx, func(t *tx) error {
		reply.Now = t.now
		if fresh {
			reply.Record, reply.Verdict, reply.Takeover, _ = state.Claim(nil, &c, t.now, t.floor)
			if inserted, err := t.insert(&reply.Record); inserted || err != nil {
				return err
			}
		}
		cur, err := t.read(c.ID)
		if err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, &c, t.now, t.floor)
		return t.write(&reply.Record, w, "update", updateArgs)
	})
	if err != nil {
		return driver.Claimed{}, err
	}
	return reply, nil
}

// write applies w, an update by the statement that fits. The row was read in this transaction.
func (t *tx) write(r *driver.Record, w state.Write, update string, args func(*driver.Record) []any) (err error) {
	switch w {
	case state.Insert:
		_, err = t.insert(r)
	case state.Update:
		_, err = t.exec(update, args(r))
	}
	return err
}

// Renew implements driver.Store.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	return s.group.do(ctx, func(t *tx) error {
		cur, err := t.read(rn.ID)
		if err != nil {
			return err
		}
		next, ok := state.Renew(cur, &rn, t.now)
		if !ok {
			return driver.ErrLeaseLost
		}
		_, err = t.exec("renew", []any{bindTime(next.LeaseUntil), bindTime(next.UpdatedAt), next.ID[:]})
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
		cur, err := t.read(f.Claim.ID)
		if err != nil {
			return err
		}
		var w state.Write
		reply.Record, reply.Applied, w = state.Finish(cur, &f, t.now)
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
		cur, err := t.read(st.ID)
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
	rec, now, err := s.read(ctx, id)
	if err != nil {
		return driver.Snapshot{}, err
	}
	if rec == nil {
		return driver.Snapshot{}, driver.ErrNotFound
	}
	return driver.Snapshot{Record: *rec, Now: now}, nil
}

// read reads outside the writer, from the last committed snapshot.
func (s *Store) read(ctx context.Context, id driver.ID) (*driver.Record, time.Time, error) {
	rec, now, err := scanOne(s.reader.QueryRowContext(ctx, id[:]))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the driver says "interrupted"
	}
	return rec, now, err
}
