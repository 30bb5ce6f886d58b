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

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
)

// onOwnServers runs a test on a server of its own of each kind.
func onOwnServers(t *testing.T, run func(t *testing.T, own *teststore.Own, s *teststore.Server), settings map[dialect.Dialect][]string) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		own := teststore.OwnPostgres(t, settings[dialect.PostgreSQL]...)
		run(t, own, teststore.PostgresAt(t, own.DSN, ""))
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		own := teststore.OwnMySQL(t, settings[dialect.MySQL]...)
		run(t, own, teststore.MySQLAt(t, own.DSN, ""))
	})
}

// insist makes a call until it is answered, as a caller does who may not guess.
func insist[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	for {
		got, err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// TestServerKilledUnderLoad: of each key two rivals want the claim while the server is killed and comes back, again and again.
// Each call is made until it is answered. One of the two wins, what was acknowledged is there in the end, and nothing else.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	onOwnServers(t, func(t *testing.T, own *teststore.Own, server *teststore.Server) {
		first := server.Store(t)
		stores := []*teststore.On{first, server.Another(t, first.Prefix)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var keys, answered atomic.Int64
		var stop atomic.Bool
		var mu sync.Mutex
		won := map[string][]string{} // key to the results of those who won it
		var wg sync.WaitGroup
		const couples = 4
		for couple := range couples {
			for _, s := range stores {
				wg.Go(func() {
					for n := 0; !stop.Load() && ctx.Err() == nil; n++ {
						c := claimOf(fmt.Sprint(couple, "-", n))
						got, err := insist(ctx, func(ctx context.Context) (driver.Claimed, error) { return s.Claim(ctx, c) })
						if err != nil {
							t.Error(err)
							return
						}
						answered.Add(1)
						if got.Verdict != driver.GotClaim {
							continue
						}
						f := endOf(c, got)
						f.Outcome.Result.Data = c.Owner[:]
						mu.Lock()
						won[c.Key] = append(won[c.Key], string(c.Owner[:]))
						mu.Unlock()
						end, err := insist(ctx, func(ctx context.Context) (driver.Finished, error) { return s.Finish(ctx, f) })
						if err != nil || !end.Applied {
							t.Errorf("%s: the winner's end: %+v, %v", c.Key, end, err)
							return
						}
						keys.Add(1)
					}
				})
			}
		}
		for range counted(2, 10) {
			now := answered.Load()
			eventually(t, "calls are answered", func() bool { return answered.Load() > now+100 })
			own.Kill()
			own.Start()
		}
		now := answered.Load()
		eventually(t, "calls are answered after the last kill", func() bool { return answered.Load() > now+100 })
		stop.Store(true)
		wg.Wait()

		for k, owners := range won {
			stored, err := first.Get(t.Context(), claimOf(k).ID)
			if err != nil {
				t.Fatalf("%s was acknowledged: %v", k, err)
			}
			if r := stored.Record; len(owners) != 1 || r.Status != driver.Success || string(r.Result.Data) != owners[0] {
				t.Errorf("%s was won %d times, stored is %+v", k, len(owners), r)
			}
		}
		t.Logf("%d keys, %d claims answered", keys.Load(), answered.Load())
	}, nil)
}

// TestServerKilledInMidCall: a call that the server took along is made again after its restart, by the same owner, and wins.
func TestServerKilledInMidCall(t *testing.T) {
	t.Parallel()
	onOwnServers(t, func(t *testing.T, own *teststore.Own, server *teststore.Server) {
		s := server.Store(t)
		// hold lets a call begin behind somebody's lock, and kills the server while it waits.
		hold := func(lock string, id driver.ID, f func() error) {
			t.Helper()
			tx, err := insist(t.Context(), func(ctx context.Context) (*sql.Tx, error) { // connections are from before the kill
				tx, err := server.Admin.BeginTx(ctx, nil)
				if err != nil {
					return nil, err
				}
				if _, err = tx.ExecContext(ctx, lock, id[:]); err != nil {
					_ = tx.Rollback()
				}
				return tx, err
			})
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() { failed <- f() }()
			waiting(t, server, 1)
			own.Kill()
			if err := <-failed; err == nil {
				t.Error("a call that was killed was answered")
			}
			_ = tx.Rollback()
			own.Start()
		}
		c := claimOf("k")
		hold(insertRow(s), c.ID, func() error {
			_, err := s.Claim(t.Context(), c)
			return err
		})
		got, err := insist(t.Context(), func(ctx context.Context) (driver.Claimed, error) { return s.Claim(ctx, c) })
		if err != nil || got.Verdict != driver.GotClaim {
			t.Fatalf("claimed again: %+v, %v", got, err)
		}
		claims(t, server.Another(t, s.Prefix), claimOf("k"), driver.InFlight)

		lock := fmt.Sprintf("SELECT id FROM %s.%srecords WHERE id = %s FOR UPDATE", server.Schema, s.Prefix, holder(server, 1))
		hold(lock, c.ID, func() error {
			_, err := s.Finish(t.Context(), endOf(c, got))
			return err
		})
		r, err := insist(t.Context(), func(ctx context.Context) (driver.Snapshot, error) { return s.Get(ctx, c.ID) })
		if err != nil || r.Record.Status != driver.Processing {
			t.Errorf("an end that nobody acknowledged: %+v, %v", r.Record, err)
		}
		end, err := insist(t.Context(), func(ctx context.Context) (driver.Finished, error) { return s.Finish(ctx, endOf(c, got)) })
		if err != nil || !end.Applied {
			t.Fatalf("ended again: %+v, %v", end, err)
		}
		claims(t, server.Another(t, s.Prefix), claimOf("k"), driver.Done)
	}, nil)
}

// holder is a placeholder.
func holder(s *teststore.Server, n int) string {
	if s.Dialect == dialect.PostgreSQL {
		return fmt.Sprint("$", n)
	}
	return "?"
}

// TestLostReply: the server did it, and its answer never came. The call is made again and answered as if it had been made once.
func TestLostReply(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		proxy, through := server.Through(t)
		s := through.Store(t)
		direct := server.Another(t, s.Prefix)
		if err := runOnce(t.Context(), s, "prepares what is to be prepared"); err != nil {
			t.Fatal(err)
		}
		c := claimOf("key-whose-reply-is-lost")
		lost := proxy.LoseReply(c.Key)
		if got, err := s.Claim(t.Context(), c); err == nil {
			t.Fatalf("the claim was answered: %+v", got)
		}
		<-lost
		first, err := direct.Get(t.Context(), c.ID)
		if err != nil || first.Record.Owner != c.Owner {
			t.Fatalf("the claim is not there: %+v, %v", first.Record, err)
		}
		claims(t, direct, claimOf(c.Key), driver.InFlight) // nobody else's
		got := claims(t, s, c, driver.GotClaim)
		if got.Record.Fence != first.Record.Fence || got.Record.Attempt != 1 || got.Takeover {
			t.Errorf("claimed again: %+v, first %+v", got.Record, first.Record)
		}

		lost = proxy.LoseReply("result of " + c.Key)
		if end, err := s.Finish(t.Context(), endOf(c, got)); err == nil {
			t.Fatalf("the end was answered: %+v", end)
		}
		<-lost
		claims(t, direct, claimOf(c.Key), driver.Done)
		ends(t, s, c, got, true)

		proxy.CutAfter(10) // in the middle of an answer
		if got, err := s.Claim(t.Context(), claimOf(c.Key)); err == nil {
			t.Errorf("half an answer is no answer: %+v", got)
		}
		claims(t, s, claimOf(c.Key), driver.Done)

		proxy.Refuse(true)
		if _, err := s.Claim(t.Context(), claimOf("k")); err == nil {
			t.Error("nobody is there, and the claim was answered")
		}
		proxy.Refuse(false)
		claims(t, s, claimOf("k"), driver.GotClaim)

		proxy.Delay(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := s.Claim(ctx, claimOf("late")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 900*time.Millisecond {
			t.Errorf("a slow network: %v after %v", err, time.Since(start))
		}
	})
}
