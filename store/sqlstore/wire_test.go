package sqlstore_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/sqlstore"
)

// TestRoundTrips counts on the wire what each path costs, whatever begins and commits transactions included.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	want := map[dialect.Dialect]map[string]int{
		dialect.PostgreSQL: {
			"first run": 1, "replay": 1, "finish": 1, "in flight": 1, "mismatch": 1, "renew": 1, "takeover": 2, "rerun": 2, "expired": 2,
			"late end": 2, "settle": 2, "get": 1,
		},
		dialect.MySQL: {
			"first run": 1, "replay": 2, "finish": 1, "in flight": 2, "mismatch": 2, "renew": 1, "takeover": 3, "rerun": 3, "expired": 3,
			"late end": 2, "settle": 2, "get": 1,
		},
	}
	onServers(t, func(t *testing.T, server *teststore.Server) {
		tables := server.Store(t)
		proxy, through := server.Through(t)
		store, err := sqlstore.Open(t.Context(), through.Open(t, 4), &sqlstore.Options{Schema: server.Schema, TablePrefix: tables.Prefix, Connections: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		// paths walks them all on keys of its own.
		paths := func(round string, count func(path string, call func())) {
			claimed := func(path string, c driver.Claim, verdict driver.Verdict) (got driver.Claimed) {
				count(path, func() { got = claims(t, store, c, verdict) })
				return got
			}
			c := repeatable(claimOf(round))
			first := claimed("first run", c, driver.GotClaim)
			claimed("in flight", claimOf(round), driver.InFlight)
			count("renew", func() {
				if err := store.Renew(t.Context(), renewalOf(c, first)); err != nil {
					t.Error(err)
				}
			})
			passes(t, tables, c.ID, 2*time.Minute)
			again := repeatable(claimOf(round))
			taken := claimed("takeover", again, driver.GotClaim)
			count("late end", func() { ends(t, store, c, first, false) })
			count("finish", func() { ends(t, store, again, taken, true) })
			claimed("replay", claimOf(round), driver.Done)
			other := claimOf(round)
			other.Fingerprint[len(other.Fingerprint)-1]++
			claimed("mismatch", other, driver.Mismatch)
			passes(t, tables, c.ID, 48*time.Hour)
			last := claimOf(round)
			got := claimed("expired", last, driver.GotClaim)
			f := endOf(last, got)
			f.Outcome = driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "busy"}
			if _, err := store.Finish(t.Context(), f); err != nil {
				t.Error(err)
			}
			got = claimed("rerun", claimOf(round), driver.GotClaim)
			passes(t, tables, c.ID, 2*time.Minute)
			count("settle", func() {
				if s, err := store.Settle(t.Context(), driver.Settlement{ID: c.ID, Fence: got.Record.Fence}); err != nil || !s.Applied {
					t.Error(s, err)
				}
			})
			count("get", func() {
				if _, err := store.Get(t.Context(), c.ID); err != nil {
					t.Error(err)
				}
			})
		}
		paths("warm", func(_ string, call func()) { call() }) // statements are prepared once for each session
		fewest := map[string]int{}
		for _, round := range []string{"a", "b", "c"} { // once in a while a call asks for more, for those that come after it
			paths(round, func(path string, call func()) {
				before := proxy.Trips()
				call()
				n := proxy.Trips() - before
				if had, ok := fewest[path]; !ok || n < had {
					fewest[path] = n
				}
			})
		}
		for path, want := range want[server.Dialect] {
			if fewest[path] != want {
				t.Errorf("%s: %d round trips, want %d", path, fewest[path], want)
			}
		}
	})
}

// TestReplaysWriteNothing: not a byte of WAL on PostgreSQL.
func TestReplaysWriteNothing(t *testing.T) {
	t.Parallel()
	server := quietPostgres(t)
	s := server.Store(t)
	const keys, replays = 100, 5
	endAll(t, s, keys, 1)
	replay := func() {
		for n := range keys {
			claims(t, s, claimOf(fmt.Sprint("k", n)), driver.Done)
		}
	}
	wal := func() (bytes int64) {
		scan(t, server.Admin, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint", &bytes)
		return bytes
	}
	replay() // the first reader may tidy pages up
	before := wal()
	for range replays {
		replay()
	}
	if written := wal() - before; written != 0 {
		t.Errorf("%d replays wrote %d bytes of WAL", keys*replays, written)
	}
}

// TestEndsStayOnTheirPage: an end with 256 bytes of result touches no index on PostgreSQL, as long as its page has room: more
// attempts at once than a page holds records share the room that fillfactor leaves.
func TestEndsStayOnTheirPage(t *testing.T) {
	t.Parallel()
	server := quietPostgres(t)
	for _, c := range []struct{ atOnce, percent int }{{1, 100}, {8, 95}, {32, 70}} {
		const keys = 200
		s := server.Store(t)
		endAll(t, s, keys, c.atOnce)
		if err := s.Close(); err != nil { // its sessions tell what they did when they end
			t.Fatal(err)
		}
		var updated, hot int
		eventually(t, "the server counts the updates", func() bool {
			scan(t, server.Admin, fmt.Sprintf("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = '%s.%srecords'::regclass", server.Schema, s.Prefix), &updated, &hot)
			return updated >= keys
		})
		t.Logf("%d at once: %d of %d ends stayed on their page", c.atOnce, hot, updated)
		if hot*100 < updated*c.percent {
			t.Errorf("%d at once: want %d %%", c.atOnce, c.percent)
		}
	}
}

// quietPostgres is a server that writes nothing by itself.
func quietPostgres(t *testing.T) *teststore.Server {
	t.Helper()
	own := teststore.OwnPostgres(t, "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "checkpoint_timeout=1h")
	return teststore.PostgresAt(t, own.DSN, "")
}

// endAll runs attempts k0, k1 and so on, so many at once.
func endAll(t *testing.T, s driver.Store, keys, atOnce int) {
	t.Helper()
	var open []driver.Finish
	for n := range keys + atOnce - 1 {
		if n < keys {
			c := claimOf(fmt.Sprint("k", n))
			f := endOf(c, claims(t, s, c, driver.GotClaim))
			f.Outcome.Result.Data = make([]byte, 256)
			open = append(open, f)
		}
		if n < atOnce-1 {
			continue
		}
		if end, err := s.Finish(t.Context(), open[0]); err != nil || !end.Applied {
			t.Fatal(end, err)
		}
		open = open[1:]
	}
}

func scan(t *testing.T, db *sql.DB, query string, into ...any) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(into...); err != nil {
		t.Fatal(err)
	}
}
