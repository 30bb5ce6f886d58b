package sqlstore_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/storetest"
)

// withClock runs f in a process whose clock is off by so much: what time.Now says, deadlines and timers included. The server
// is outside and keeps its own.
func withClock(t *testing.T, off time.Duration, f func(t *testing.T)) {
	t.Helper()
	there := time.Now().Add(off)
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(there)) // the bubble's clock begins in the year 2000
		f(t)
	})
}

// TestClockOfTheApplication: what a store decides and writes does not depend on the clock of its process.
func TestClockOfTheApplication(t *testing.T) {
	t.Parallel()
	for name, server := range servers() {
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			t.Run(name+" "+off.String(), func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				withClock(t, off, func(t *testing.T) {
					server := server(t)
					h := server.Harness()
					storetest.Model(t, &h, uint64(time.Now().UnixNano()), counted(150, 2_000))

					s := server.Store(t)
					c := claimOf("k")
					got := claims(t, s, c, driver.GotClaim)
					end := ends(t, s, c, got, true)
					for what, at := range map[string]time.Time{"claim": got.Now, "claimed_at": got.Record.ClaimedAt, "end": end.Now, "completed_at": end.Record.CompletedAt} {
						if d := at.Sub(start); d < -time.Minute || d > 10*time.Minute {
							t.Errorf("%s is %v, %v from what the clocks outside say", what, at, d)
						}
					}
				})
			})
		}
	}
}

// TestCaseB119OneClock: two processes whose clocks are twenty minutes apart agree on when a lease is over, and a renewal that
// comes late shortens nothing.
func TestCaseB119OneClock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
			s := server.Store(t)
			first := repeatable(claimOf("k"))
			got := claims(t, s, first, driver.GotClaim)
			there := &teststore.Server{Dialect: server.Dialect, Driver: server.Driver, DSN: server.DSN, Schema: server.Schema}
			withClock(t, off, func(t *testing.T) {
				claims(t, there.Another(t, s.Prefix), repeatable(claimOf("k")), driver.InFlight)
			})
			long := renewalOf(first, got)
			long.Lease = time.Hour
			if err := s.Renew(t.Context(), long); err != nil {
				t.Fatal(err)
			}
			longer, err := s.Get(t.Context(), first.ID)
			if err != nil {
				t.Fatal(err)
			}
			withClock(t, off, func(t *testing.T) {
				if err := there.Another(t, s.Prefix).Renew(t.Context(), renewalOf(first, got)); err != nil {
					t.Error(err)
				}
			})
			if after, err := s.Get(t.Context(), first.ID); err != nil || !after.Record.LeaseUntil.Equal(longer.Record.LeaseUntil) {
				t.Errorf("an older renewal moved the end from %v to %v, %v", longer.Record.LeaseUntil, after.Record.LeaseUntil, err)
			}
			passes(t, s, first.ID, 2*time.Hour)
			withClock(t, off, func(t *testing.T) {
				other := there.Another(t, s.Prefix)
				if err := other.Renew(t.Context(), renewalOf(first, got)); !errors.Is(err, driver.ErrLeaseLost) {
					t.Errorf("a lapsed lease is renewed: %v", err)
				}
				claims(t, other, repeatable(claimOf("k")), driver.GotClaim)
			})
		}
	})
}

// TestCaseB121RetentionCountsFromTheEnd: also of an attempt that outlived its lease.
func TestCaseB121RetentionCountsFromTheEnd(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		s := server.Store(t)
		for _, kind := range []driver.Failure{driver.Final, driver.Retryable} {
			c := claimOf(kind.String())
			got := claims(t, s, c, driver.GotClaim)
			passes(t, s, c.ID, c.Lease+10*time.Second)
			f := endOf(c, got)
			f.Outcome = driver.Outcome{Status: driver.Fail, Failure: kind, Error: "no"}
			end, err := s.Finish(t.Context(), f)
			if err != nil || !end.Applied {
				t.Fatal(end.Applied, err)
			}
			stored, err := s.Get(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			r := stored.Record
			if want := end.Now.Add(c.Retention); !r.ExpiresAt.Equal(want) || !r.CompletedAt.Equal(end.Now) {
				t.Errorf("%v: ended %v, expires %v, want %v and %v", kind, r.CompletedAt, r.ExpiresAt, end.Now, want)
			}
		}
	})
}
