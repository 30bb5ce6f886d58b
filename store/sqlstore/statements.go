package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// hostNow is SQLite's clock: the host's, in milliseconds.
func hostNow() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// begun is what the first statement of a claim did.
type begun struct {
	inserted bool
	fence    int64
	now      time.Time

	found  bool // PostgreSQL: the record that was there
	record driver.Record
}

// begin claims a record that is not there, in one statement. On SQLite the times are made here, elsewhere by the server.
func (s *Store) begin(ctx context.Context, on conn, c *driver.Claim) (got begun, err error) {
	switch s.dialect {
	case dialect.PostgreSQL:
		got.record = identity(c)
		name, args := "claim", beginArgs(c)
		if s.bound {
			name, args = "claim_bound", append(args, s.lockWait)
		}
		err = on.query(ctx, name, func(row []sqldriver.Value) error {
			if text(row[1]) == "INSERTED" {
				got.inserted, got.now = true, timeOf(row[0])
				got.fence, _ = row[7].(int64)
				return nil
			}
			got.found = true
			got.now, err = scanFields(&got.record, row)
			return err
		}, args...)
		if err == nil && s.bound && !got.inserted && !got.found { // no row has put lock_timeout back
			_, err = on.exec(ctx, "wait_before")
		}
		return got, err
	case dialect.MySQL:
		floor, err := s.floor.get(ctx, s, on)
		if err != nil {
			return got, err
		}
		var done driver.TxResult
		insert := func() error {
			done, err = on.exec(ctx, "insert", append(beginArgs(c), floor+1)...)
			return err
		}
		if s.mariadb { // it has a prefix for that
			err = insert()
		} else {
			err = s.waiting(ctx, on, insert)
		}
		got.inserted, got.fence = done.Affected == 1, done.LastInsertID
		got.now = time.UnixMicro(got.fence).UTC()
		if got.inserted && got.fence == floor+1 && err == nil { // the floor is ahead of the clock: ask what time it was
			rec, _, err := s.get(ctx, on, c.ID)
			if err != nil || rec == nil {
				return got, errors.Join(errAgain, err)
			}
			got.now = rec.ClaimedAt
		}
		return got, err
	}
	got.now = hostNow()
	r, _, _, _ := state.Claim(nil, c, got.now, 0)
	got.fence = r.Fence
	done, err := on.exec(ctx, "insert", append(insertArgs(&r), r.Fence)...)
	got.inserted = done.Affected == 1
	return got, err
}

// waiting lets run wait for locks only as long as it is told to, and leaves the session as it was: in a caller's transaction,
// for the statements that have no shorter way to say so. After an error of PostgreSQL the transaction is over, and with it
// what was set.
func (s *Store) waiting(ctx context.Context, on conn, run func() error) error {
	if !s.bound || s.lockWait == "" || s.dialect == dialect.SQLite {
		return run()
	}
	if _, err := on.exec(ctx, "wait", s.lockWait); err != nil {
		return err
	}
	err := run()
	if err != nil && s.dialect == dialect.PostgreSQL {
		return err
	}
	_, again := on.exec(context.WithoutCancel(ctx), "wait_before")
	return errors.Join(err, again)
}

// finish ends an attempt whose record is as its own claim left it, in one statement.
func (s *Store) finish(ctx context.Context, on conn, f *driver.Finish) (done bool, now time.Time, err error) {
	switch s.dialect {
	case dialect.PostgreSQL:
		err = on.query(ctx, "finish", func(row []sqldriver.Value) error {
			done, now = true, timeOf(row[0])
			return nil
		}, endArgs(f)...)
		return done, now, err
	case dialect.MySQL:
		res, err := on.exec(ctx, "finish", endArgs(f)...)
		return res.Affected > 0, time.UnixMicro(res.LastInsertID).UTC(), err
	}
	now = hostNow()
	r, _, _ := state.Finish(nil, f, now)
	res, err := on.exec(ctx, "finish", finishArgs(&r, f.Claim.Owner)...)
	return res.Affected > 0, now, err
}

// renew reports whether the lease was held, and is now longer.
func (s *Store) renew(ctx context.Context, on conn, rn *driver.Renewal) (held bool, err error) {
	args := []sqldriver.Value{rn.Lease.Microseconds(), rn.ID[:], rn.Owner[:], rn.Fence}
	if s.dialect == dialect.SQLite {
		now := hostNow()
		args = append([]sqldriver.Value{bindTime(now.Add(rn.Lease)), bindTime(now)}, args[1:]...)
	}
	res, err := on.exec(ctx, "renew", args...)
	if err != nil || res.Affected > 0 || s.dialect != dialect.MySQL {
		return res.Affected > 0, err
	}
	// MySQL counts rows that changed: a second renewal in the same microsecond changes nothing.
	cur, now, err := s.get(ctx, on, rn.ID)
	if err != nil {
		return false, err
	}
	_, held = state.Renew(cur, rn, now)
	return held, nil
}

// read fills a record that has its identity, in a caller's transaction under a lock. now and floor, the fence below which
// no new claim may begin, come with it.
func (s *Store) read(ctx context.Context, on conn, rec *driver.Record) (found bool, now time.Time, floor int64, err error) {
	err = s.waiting(ctx, on, func() (err error) {
		found, now, err = s.readRow(ctx, on, rec)
		return err
	})
	if found || err != nil {
		return found, now, 0, err
	}
	now, floor, err = s.clock(ctx, on)
	return false, now, floor, err
}

// clock returns the store's clock and fence floor.
func (s *Store) clock(ctx context.Context, on conn) (now time.Time, floor int64, err error) {
	err = on.query(ctx, "clock", func(row []sqldriver.Value) error {
		h := short{values: row}
		now, floor = h.clock(), h.number()
		return h.err
	})
	if err == nil && now.IsZero() {
		err = errors.New("onceward: the store's fence floor is gone: its first migration is not whole")
	}
	return now, floor, err
}

func (s *Store) readRow(ctx context.Context, on conn, rec *driver.Record) (found bool, now time.Time, err error) {
	err = on.query(ctx, s.reading, func(row []sqldriver.Value) (err error) {
		found = true
		now, err = scanFields(rec, row)
		return err
	}, rec.ID[:])
	return found, now, err
}

// get returns a whole record, nil when there is none.
func (s *Store) get(ctx context.Context, on conn, id driver.ID) (rec *driver.Record, now time.Time, err error) {
	err = on.query(ctx, "get", func(row []sqldriver.Value) error {
		rec = scanIdentity(id, row)
		now, err = scanFields(rec, row)
		return err
	}, id[:])
	return rec, now, err
}

// floorAge is how long the floor is taken for what it was.
const floorAge = int64(time.Second)

// floor is the fence floor of MySQL as it was a moment ago. It guards against a clock that goes back behind what was purged,
// which takes longer than that moment.
type floor struct {
	value atomic.Int64
	asked atomic.Int64 // when, in nanoseconds; Open asks first
}

// get returns the floor. One caller at a time asks for it anew, on the session that it has; inside a caller's transaction
// nobody does: a read there would take the transaction's snapshot.
func (f *floor) get(ctx context.Context, s *Store, on conn) (int64, error) {
	asked, now := f.asked.Load(), time.Now().UnixNano()
	if s.bound || now-asked < floorAge && now >= asked || !f.asked.CompareAndSwap(asked, now) {
		return f.value.Load(), nil
	}
	_, value, err := s.clock(ctx, on)
	if err == nil {
		f.raise(value)
	}
	return value, err
}

// raise is told of a floor that was just raised.
func (f *floor) raise(to int64) {
	for old := f.value.Load(); to > old && !f.value.CompareAndSwap(old, to); old = f.value.Load() {
	}
}

// write applies what was decided on cur, nil for a missing record, if that is still what is there.
func (s *Store) write(ctx context.Context, on conn, cur, next *driver.Record, w state.Write) error {
	var res driver.TxResult
	var err error
	switch w {
	case state.Keep:
		return nil
	case state.Insert:
		res, err = on.exec(ctx, "put", s.putArgs(next)...)
	case state.Update:
		args := append(s.updateArgs(next), cur.ID[:], cur.Fence, cur.Owner[:], cur.Status.String(), cur.Failure.String(), s.bindTime(cur.UpdatedAt))
		err = s.waiting(ctx, on, func() (err error) {
			res, err = on.exec(ctx, "update", args...)
			return err
		})
	}
	if err == nil && res.Affected == 0 {
		err = errAgain
	}
	return err
}
