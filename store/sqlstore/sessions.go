package sqlstore

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

var errClosed = errors.New("onceward: the store is closed")

// sessions is a set of sessions of the store's own, each lent to one call at a time and opened at its first use. The one
// that came back last is lent first: its server has what it needs at hand, and the others are not opened for nothing.
type sessions struct {
	store  *Store
	places chan struct{} // one for each session that is free
	mu     sync.Mutex
	free   []*session
	closed chan struct{}
}

func newSessions(s *Store, n int) *sessions {
	p := &sessions{store: s, places: make(chan struct{}, n), closed: make(chan struct{})}
	for range n {
		p.giveBack(new(session))
	}
	return p
}

// take returns a free session, of which the caller has a place.
func (p *sessions) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	s := p.free[last]
	p.free = p.free[:last]
	return s
}

func (p *sessions) giveBack(s *session) {
	p.mu.Lock()
	p.free = append(p.free, s)
	p.mu.Unlock()
	p.places <- struct{}{}
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
	select {
	case <-p.places:
	case <-p.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s := p.take()
	defer p.giveBack(s)
	err := s.open(ctx, p.store, p.store.setup)
	if err == nil {
		if err = s.use(func() error { return f(s) }); err != nil && !p.harmless(err) {
			s.close()
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // drivers say "interrupted" and the like
	}
	return err
}

// harmless reports whether a session is as good as before after err.
func (p *sessions) harmless(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, driver.ErrDamaged) ||
		p.store.dialect != dialect.SQLite && (p.store.dialect.Busy(err) || p.store.dialect.Conflict(err))
}

// close waits for the calls that are under way.
func (p *sessions) close() {
	for range cap(p.places) {
		<-p.places
		p.take().close()
	}
	close(p.closed)
}
