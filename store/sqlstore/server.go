package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
)

// server runs the calls on PostgreSQL and MySQL, each statement a transaction of its own, on a few sessions of the store's.
// Heartbeats have a lane of their own: claims that wait for locks or fill all sessions can't starve them.
type server struct {
	store   *Store
	calls   *sessions
	beats   *sessions
	closing sync.Once
}

func newServer(s *Store, connections int) *server {
	most := s.db.Stats().MaxOpenConnections
	if most > 0 {
		connections = min(connections, max(1, most-2)) // one for heartbeats, one for everybody else
	}
	p := &server{store: s, calls: newSessions(s, connections)}
	p.beats = p.calls
	if most == 0 || most > 2 {
		p.beats = newSessions(s, 1)
	}
	return p
}

// ready opens a session of each lane before others can take the handle's connections.
func (p *server) ready(ctx context.Context) error {
	err := p.calls.use(ctx, func(on *session) error { _, err := p.store.floor.get(ctx, p.store, on); return err })
	if err == nil && p.beats != p.calls {
		err = p.beats.use(ctx, func(*session) error { return nil })
	}
	return err
}

// read implements runner.
func (p *server) read(ctx context.Context, f func(context.Context, conn) error) error {
	return p.again(ctx, p.calls, f)
}

// write implements runner.
func (p *server) write(ctx context.Context, c call) error {
	lane := p.calls
	if c.beat {
		lane = p.beats
	}
	return p.again(ctx, lane, c.run)
}

// maxTries bounds how often a call is begun anew because others came between.
const maxTries = 20

// again runs f until nobody came between. What it does may be done again: a decision that is made again is the same.
func (p *server) again(ctx context.Context, lane *sessions, f func(context.Context, conn) error) error {
	for try := 1; ; try++ {
		err := lane.use(ctx, func(s *session) error { return f(ctx, s) })
		switch {
		case err == nil:
			return nil
		case p.store.dialect.Busy(err):
			return fmt.Errorf("%w: %w", driver.ErrLocked, err)
		case p.store.dialect.Full(err):
			return fmt.Errorf("%w: %w", driver.ErrStoreFull, err)
		case try == maxTries || !errors.Is(err, errAgain) && !errors.Is(err, sqldriver.ErrBadConn) && !p.store.dialect.Conflict(err):
			return err
		}
		if try == 1 {
			continue // a stale connection, or somebody who has gone by now
		}
		select {
		case <-time.After(rand.N(min(time.Millisecond<<try, 100*time.Millisecond))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *server) close() {
	p.closing.Do(func() {
		p.calls.close()
		if p.beats != p.calls {
			p.beats.close()
		}
	})
}
