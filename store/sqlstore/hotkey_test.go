package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
)

// TestHotKey: a transaction sits on the row of one key. Its duplicates, claims and heartbeats may wait; those of all other
// keys go on.
func TestHotKey(t *testing.T) {
	t.Parallel()
	held := time.Duration(counted(1500, 5000)) * time.Millisecond
	onServers(t, func(t *testing.T, server *teststore.Server) {
		s := server.Store(t)
		hot, other := claimOf("hot"), claimOf("other")
		gotHot, gotOther := claims(t, s, hot, driver.GotClaim), claims(t, s, other, driver.GotClaim)
		tx := locks(t, server, s, hot.ID)

		ctx, cancel := context.WithTimeout(t.Context(), held)
		defer cancel()
		var hotClaims, otherClaims, otherBeats atomic.Int64
		var slowest atomic.Int64
		var wg sync.WaitGroup
		for range 4 { // duplicates, fewer than there are sessions: a guard lets one of each process through
			wg.Go(func() {
				for ctx.Err() == nil {
					if got, err := s.Claim(ctx, claimOf("hot")); err == nil && got.Verdict == driver.InFlight || errors.Is(err, driver.ErrLocked) {
						hotClaims.Add(1)
					} else if ctx.Err() == nil {
						t.Errorf("a duplicate of the hot key: %d, %v", got.Verdict, err)
					}
				}
			})
		}
		wg.Go(func() { // the holder's heartbeat
			for ctx.Err() == nil {
				if err := s.Renew(ctx, renewalOf(hot, gotHot)); ctx.Err() == nil && !errors.Is(err, driver.ErrLocked) {
					t.Errorf("the heartbeat of the hot key: %v", err)
				}
			}
		})
		for n := range 2 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					start := time.Now()
					if err := runOnce(ctx, s, fmt.Sprint(n, "-", i)); err == nil {
						otherClaims.Add(1)
					} else if ctx.Err() == nil {
						t.Error(err)
					}
					slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := s.Renew(ctx, renewalOf(other, gotOther)); err == nil {
					otherBeats.Add(1)
				} else if ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		t.Logf("in %v: %d claims of the hot key were answered, %d other attempts ran, the slowest took %v, %d heartbeats of another",
			held, hotClaims.Load(), otherClaims.Load(), time.Duration(slowest.Load()), otherBeats.Load())
		if otherClaims.Load() < 20 || otherBeats.Load() == 0 { // behind it there would be one or two
			t.Error("others have to wait for the hot key")
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		ends(t, s, hot, gotHot, true)
	})
}

// locks holds a record's row in a transaction of somebody's.
func locks(t *testing.T, server *teststore.Server, s *teststore.On, id driver.ID) *sql.Tx {
	t.Helper()
	tx, err := server.Admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	query := fmt.Sprintf("SELECT fence FROM %s.%srecords WHERE id = %s FOR UPDATE", server.Schema, s.Prefix, holder(server, 1))
	var fence int64
	if err := tx.QueryRowContext(t.Context(), query, id[:]).Scan(&fence); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestLockAndStatementTimeouts: who waits in vain is told so within a second or as long as the caller says, nothing was
// written, and the same call made again is right.
func TestLockAndStatementTimeouts(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"none":       "",
		"long locks": "lock_timeout=1h",
		"statements": "statement_timeout=300ms",
	} {
		t.Run("postgres "+name, func(t *testing.T) {
			t.Parallel()
			lockedOut(t, teststore.Postgres(t, params), name != "statements")
		})
	}
	for name, params := range map[string]string{
		"none":       "",
		"long locks": "innodb_lock_wait_timeout=100",
		"statements": "max_statement_time=0.3",
	} {
		t.Run("mysql "+name, func(t *testing.T) {
			t.Parallel()
			lockedOut(t, teststore.MySQL(t, params), name != "statements")
		})
	}
}

// lockedOut puts a transaction in the way of each call. told says whether the store's own patience comes before others'.
func lockedOut(t *testing.T, server *teststore.Server, told bool) {
	t.Helper()
	s := server.Store(t)
	direct := server.Admin
	c := claimOf("k")
	tx, err := direct.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), insertRow(s), c.ID[:]); err != nil {
		t.Fatal(err)
	}
	patience := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if got, err := s.Claim(patience(), c); err == nil {
		t.Errorf("a claim that could not be decided was answered: %+v", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	got := claims(t, s, c, driver.GotClaim)

	tx = locks(t, server, s, c.ID)
	if err := s.Renew(patience(), renewalOf(c, got)); err == nil || errors.Is(err, driver.ErrLocked) != told {
		t.Errorf("a locked record was renewed: %v", err)
	}
	if end, err := s.Finish(patience(), endOf(c, got)); err == nil {
		t.Errorf("a locked record was ended: %+v", end)
	}
	if r, err := s.Get(patience(), c.ID); err != nil || r.Record.Status != driver.Processing {
		t.Errorf("in between: %+v, %v", r.Record, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	ends(t, s, c, got, true)
	claims(t, s, claimOf("k"), driver.Done)
}

// TestBusyPool: business transactions hold every connection that they can get, of a handle of their own and of the store's.
// Whatever the store's sessions did before, they go on doing, heartbeats too.
func TestBusyPool(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		s := server.Store(t)
		c := claimOf("k")
		got := claims(t, s, c, driver.GotClaim)
		if err := s.Renew(t.Context(), renewalOf(c, got)); err != nil {
			t.Fatal(err)
		}
		for _, db := range []*sql.DB{server.Open(t, 4), s.DB} {
			for { // one after the other, until there are no more
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				conn, err := db.Conn(ctx)
				cancel()
				if err != nil {
					break
				}
				tx, err := conn.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _, _ = tx.Rollback(), conn.Close() })
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for n := range 20 {
			if err := runOnce(ctx, s, fmt.Sprint("k", n)); err != nil {
				t.Fatal(err)
			}
			if err := s.Renew(ctx, renewalOf(c, got)); err != nil {
				t.Fatal(err)
			}
		}
		ends(t, s, c, got, true)
	})
}
