package sqlstore

import (
	"context"
	"errors"
	"runtime"

	"github.com/onceward/onceward/driver"
)

var errClosed = errors.New("onceward: the store is closed")

// sessions is a set of sessions of the store's own, each lent to one call at a time and opened at its first use.
type sessions struct {
	store  *Store
	free   chan *session
	closed chan struct{}
}

func newSessions(s *Store, n int) sessions {
	p := sessions{store: s, free: make(chan *session, n), closed: make(chan struct{})}
	for range n {
		p.free <- new(session)
	}
	return p
}

// readers says how many sessions read from a SQLite file beside its writer: as many as the processors can keep busy and
// the pool allows. One connection is left to others where there are enough.
func readers(maxOpen int) int {
	n := max(4, runtime.GOMAXPROCS(0))
	if maxOpen > 0 {
		n = max(1, min(n, maxOpen-2))
	}
	return n
}

// use lends a session to f. After an error that its store does not know the session is not used again: a fresh connection
// is certain.
func (p *sessions) use(ctx context.Context, f func(*session) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var s *session
	select {
	case s = <-p.free:
	case <-p.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { p.free <- s }()
	err := s.open(ctx, p.store, p.store.setup)
	if err == nil {
		if err = s.use(func() error { return f(s) }); err != nil && !harmless(err) {
			s.close()
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // drivers say "interrupted" and the like
	}
	return err
}

// harmless reports whether a session is as good as before after err.
func harmless(err error) bool { return errors.Is(err, errAgain) || errors.Is(err, driver.ErrDamaged) }

// close waits for the calls that are under way.
func (p *sessions) close() {
	for range cap(p.free) {
		(<-p.free).close()
	}
	close(p.closed)
}
