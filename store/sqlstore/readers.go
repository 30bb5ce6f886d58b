package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"runtime"
	"time"

	"github.com/onceward/onceward/driver"
)

var errClosed = errors.New("onceward: the store is closed")

// readers are the sessions that read, each from the last committed snapshot, beside the writer and never behind it.
type readers struct {
	store  *Store
	free   chan *session // opened at the first use
	closed chan struct{}
}

// newReaders makes as many as the processors can keep busy and the pool allows, which the writer shares with them. One
// connection is left to others where there are enough.
func newReaders(s *Store, maxOpen int) readers {
	n := max(4, runtime.GOMAXPROCS(0))
	if maxOpen > 0 {
		n = max(1, min(n, maxOpen-2))
	}
	r := readers{store: s, free: make(chan *session, n), closed: make(chan struct{})}
	for range n {
		r.free <- new(session)
	}
	return r
}

// use lends a session to f. The context bounds the waiting; a started read is short and is not interrupted.
func (r *readers) use(ctx context.Context, f func(*session) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var s *session
	select {
	case s = <-r.free:
	case <-r.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.free <- s }()
	err := s.open(ctx, r.store, nil, "read", "get", "scan")
	if err == nil {
		if err = s.use(func() error { return f(s) }); err != nil {
			s.close() // a fresh connection is certain
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // drivers say "interrupted"
	}
	return err
}

// close waits for the reads that are under way.
func (r *readers) close() {
	for range cap(r.free) {
		(<-r.free).close()
	}
	close(r.closed)
}

// read fills a record that has its identity. found is false when there is none; then there is no clock either.
func (s *session) read(rec *driver.Record) (found bool, now time.Time, err error) {
	err = s.query("read", fieldColumns, func(row []sqldriver.Value) (err error) {
		found = true
		now, err = scanFields(rec, row)
		return err
	}, rec.ID[:])
	return found, now, err
}

// get returns a whole record, nil when there is none.
func (s *session) get(id driver.ID) (rec *driver.Record, now time.Time, err error) {
	err = s.query("get", identityColumns, func(row []sqldriver.Value) (err error) {
		rec = scanIdentity(id, row)
		now, err = scanFields(rec, row)
		return err
	}, id[:])
	return rec, now, err
}
