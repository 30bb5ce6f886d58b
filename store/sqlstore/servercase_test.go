package sqlstore_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/sqlstore"
)

// onServers runs a test on each kind of server.
func onServers(t *testing.T, run func(t *testing.T, s *teststore.Server)) {
	t.Helper()
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server(t))
		})
	}
}

// claims demands a verdict.
func claims(t *testing.T, s driver.Store, c driver.Claim, want driver.Verdict) driver.Claimed {
	t.Helper()
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	if got.Verdict != want {
		t.Fatalf("claim: verdict %d, want %d; record %+v", got.Verdict, want, got.Record)
	}
	return got
}

// ends finishes successfully and demands that it was taken, or not.
func ends(t *testing.T, s driver.Store, c driver.Claim, got driver.Claimed, applied bool) driver.Finished {
	t.Helper()
	end, err := s.Finish(t.Context(), endOf(c, got))
	if err != nil {
		t.Fatalf("finish: %v", err)
	}
	if end.Applied != applied {
		t.Fatalf("finish: applied %v, want %v; record %+v", end.Applied, applied, end.Record)
	}
	return end
}

func endOf(c driver.Claim, got driver.Claimed) driver.Finish {
	return driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: got.Record.Attempt, Died: got.Record.Died,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte("result of " + c.Key)}}}
}

// passes lets time pass for a record.
func passes(t *testing.T, s *teststore.On, id driver.ID, d time.Duration) {
	t.Helper()
	s.Server.Harness().Edit(t, s, id, func(r *driver.Record) {
		for _, at := range []*time.Time{&r.LeaseUntil, &r.DeadlineAt, &r.CreatedAt, &r.ClaimedAt, &r.UpdatedAt, &r.CompletedAt, &r.ExpiresAt} {
			if !at.IsZero() {
				*at = at.Add(-d)
			}
		}
	})
}

// repeatable says that a dead attempt may be run again.
func repeatable(c driver.Claim) driver.Claim {
	c.OnLapse = driver.LapseRepeat
	return c
}

// TestCaseB050FoundRows: no answer hangs on what a connection counts as affected.
func TestCaseB050FoundRows(t *testing.T) {
	t.Parallel()
	for _, found := range []string{"clientFoundRows=false", "clientFoundRows=true"} {
		t.Run(found, func(t *testing.T) {
			t.Parallel()
			s := teststore.MySQL(t, found).Store(t)
			dead := repeatable(claimOf("k"))
			first := claims(t, s, dead, driver.GotClaim)
			claims(t, s, claimOf("k"), driver.InFlight)

			passes(t, s, dead.ID, 2*time.Minute)
			next := []driver.Claim{repeatable(claimOf("k")), repeatable(claimOf("k"))}
			got := make([]driver.Claimed, 2)
			var wg sync.WaitGroup
			for i := range next {
				wg.Go(func() {
					var err error
					if got[i], err = s.Claim(t.Context(), next[i]); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			won := slices.IndexFunc(got, func(g driver.Claimed) bool { return g.Verdict == driver.GotClaim })
			if won < 0 || got[1-won].Verdict != driver.InFlight {
				t.Fatalf("after the lease: %d and %d, want one claim", got[0].Verdict, got[1].Verdict)
			}

			ends(t, s, dead, first, false)
			if err := s.Renew(t.Context(), renewalOf(dead, first)); !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("the dead attempt renews: %v", err)
			}
			if err := s.Renew(t.Context(), renewalOf(next[won], got[won])); err != nil {
				t.Error(err)
			}
			ends(t, s, next[won], got[won], true)
			ends(t, s, next[won], got[won], true) // its answer was lost
			claims(t, s, claimOf("k"), driver.Done)
		})
	}
}

func renewalOf(c driver.Claim, got driver.Claimed) driver.Renewal {
	return driver.Renewal{ID: c.ID, Owner: c.Owner, Fence: got.Record.Fence, Lease: c.Lease}
}

// TestCaseB052FirstInserterRollsBack: of those who wait for a claim that is rolled back one wins and the other is told so.
func TestCaseB052FirstInserterRollsBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		if server.Dialect == dialect.MySQL {
			server = teststore.MySQLAt(t, teststore.OwnMySQL(t).DSN, "") // see waiting
		}
		s := server.Store(t)
		for n := range counted(50, 200) {
			k := fmt.Sprint("k", n)
			tx, err := server.Admin.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			id := claimOf(k).ID
			if _, err := tx.ExecContext(t.Context(), insertRow(s), id[:]); err != nil {
				t.Fatal(err)
			}
			got := make(chan driver.Verdict, 2)
			for range 2 {
				go func() {
					c, err := s.Claim(t.Context(), claimOf(k))
					if err != nil {
						t.Error(err)
					}
					got <- c.Verdict
				}()
			}
			waiting(t, server, 2)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if a, b := <-got, <-got; a+b != driver.GotClaim+driver.InFlight {
				t.Fatalf("round %d: verdicts %d and %d, want one claim and one in flight", n, a, b)
			}
		}
	})
}

// insertRow is what an application that knows the table would write, with the id left open.
func insertRow(s *teststore.On) string {
	id, bytes, now := "$1", `'\x00'`, "now()"
	if s.Server.Dialect == dialect.MySQL {
		id, bytes, now = "?", "'0'", "UTC_TIMESTAMP(6)"
	}
	return fmt.Sprintf(`INSERT INTO %s.%srecords (id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts,
		owner, lease_us, on_lapse, retention_us, fence, created_at, claimed_at, updated_at)
		VALUES (%s, '', '', '', '', '', %[4]s, 1, %[4]s, 1, 'UNKNOWN', 1, 1, %[5]s, %[5]s, %[5]s)`,
		s.Server.Schema, s.Prefix, id, bytes, now)
}

// waiting returns when so many sessions wait for a lock on the server's tables; on MySQL on any of the server's.
func waiting(t *testing.T, server *teststore.Server, n int) {
	t.Helper()
	query := "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, '" + server.Schema + ".') > 0"
	if server.Dialect == dialect.MySQL {
		query = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
	}
	eventually(t, fmt.Sprint(n, " sessions wait"), func() bool {
		var waiting int
		if err := server.Admin.QueryRowContext(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting >= n
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never: " + what)
		}
	}
}

// TestCaseB054BlanksCount: keys are bytes on every store, by types that MySQL and MariaDB both have.
func TestCaseB054BlanksCount(t *testing.T) {
	t.Parallel()
	for _, kind := range teststore.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			s := kind.Harness(t).Open(t)
			for _, k := range []string{"k", "k ", "k\t", "k\u00a0", "K", "k\x00"} {
				claims(t, s, claimOf(k), driver.GotClaim)
			}
		})
	}
	t.Run("collations", func(t *testing.T) {
		t.Parallel()
		all, err := sqlstore.Migrations(dialect.MySQL, "", "p_")
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range all {
			for _, m := range regexp.MustCompile(`(?i)collate[ =]*(\w+)`).FindAllStringSubmatch(text, -1) {
				if !slices.Contains([]string{"ascii_bin", "utf8mb4_bin"}, m[1]) {
					t.Errorf("%s: collation %s is not on both", name, m[1])
				}
			}
		}
	})
}

// TestCaseB055NoDeadlocksBetweenKeys: callers of different keys have nothing to do with each other.
func TestCaseB055NoDeadlocksBetweenKeys(t *testing.T) {
	t.Parallel()
	own := teststore.OwnMySQL(t, "innodb-flush-log-at-trx-commit=0")
	server := teststore.MySQLAt(t, own.DSN, "")
	s := server.Store(t)
	const workers = 64
	keys := counted(50, 1000)
	var errs atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range keys {
				if err := runOnce(t.Context(), s, fmt.Sprint(w, "-", n)); err != nil {
					errs.Add(1)
					t.Log(err)
				}
			}
		})
	}
	wg.Wait()
	var name string
	var deadlocks int
	if err := server.Admin.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").Scan(&name, &deadlocks); err != nil {
		t.Fatal(err)
	}
	if errs.Load() > 0 || deadlocks*100 >= workers*keys {
		t.Errorf("%d errors and %d deadlocks in %d claims and ends", errs.Load(), deadlocks, 2*workers*keys)
	}
}

// TestCaseB056FractionsAndZones: times are kept to the microsecond, whatever zone a session, a server and a driver think in.
func TestCaseB056FractionsAndZones(t *testing.T) {
	t.Parallel()
	const at = "1700000000.950000" // 2023-11-14 22:13:20.95 UTC
	for _, params := range []string{
		"", "loc=Asia%2FShanghai&parseTime=true&time_zone=" + url.QueryEscape("'-05:00'"),
		"loc=Asia%2FShanghai&sql_mode=" + url.QueryEscape("''"),
	} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			s := teststore.MySQL(t, strings.TrimPrefix(params+"&timestamp="+at, "&")).Store(t)
			c := claimOf("k")
			c.Lease = 900 * time.Millisecond
			got := claims(t, s, c, driver.GotClaim)
			want := time.UnixMicro(1700000000_950000).UTC()
			if !got.Now.Equal(want) || !got.Record.LeaseUntil.Equal(want.Add(c.Lease)) {
				t.Errorf("at %v until %v, want %v and 900 ms more", got.Now, got.Record.LeaseUntil, want)
			}
			if stored, err := s.Get(t.Context(), c.ID); err != nil || !stored.Record.LeaseUntil.Equal(got.Record.LeaseUntil) {
				t.Errorf("read back %v, %v", stored.Record.LeaseUntil, err)
			}
			var raw string
			query := "SELECT CAST(lease_until AS CHAR) FROM " + s.Server.Schema + "." + s.Prefix + "records"
			if err := s.Server.Admin.QueryRowContext(t.Context(), query).Scan(&raw); err != nil || raw != "2023-11-14 22:13:21.850000" {
				t.Errorf("the column holds %s, %v", raw, err)
			}
			claims(t, s, claimOf("k"), driver.InFlight)
		})
	}
	t.Run("a server in another zone", func(t *testing.T) {
		t.Parallel()
		own := teststore.OwnMySQL(t, "default-time-zone=-05:00")
		s := teststore.MySQLAt(t, own.DSN, "loc=Asia%2FShanghai&parseTime=true").Store(t)
		c := claimOf("k")
		got := claims(t, s, c, driver.GotClaim)
		if off := time.Since(got.Now).Abs(); off > time.Minute {
			t.Errorf("the store's clock is %v off", off)
		}
		claims(t, s, claimOf("k"), driver.InFlight)
		ends(t, s, c, got, true)
	})
}

// TestCaseB057PoisonedSessions: what an application left set in its pool neither harms the store nor is changed by it.
func TestCaseB057PoisonedSessions(t *testing.T) {
	t.Parallel()
	poison := map[string][]string{
		"mysql": {
			"SET sql_mode = ''", "SET time_zone = '+09:00'", "SET autocommit = 0", "SET tx_isolation = 'SERIALIZABLE'",
			"SET innodb_lock_wait_timeout = 100", "SET tx_read_only = 1",
		},
		"postgres": {
			"SET TimeZone = 'Asia/Tokyo'", "SET DateStyle = 'SQL, DMY'", "SET default_transaction_isolation = 'serializable'",
			"SET search_path = nowhere", "SET bytea_output = 'escape'", "SET lock_timeout = 0",
		},
	}
	asked := map[string]string{
		"mysql":    "SELECT CONCAT_WS(' ', @@sql_mode, @@time_zone, @@autocommit, @@tx_isolation, @@innodb_lock_wait_timeout, @@tx_read_only)",
		"postgres": "SELECT concat_ws(' ', current_setting('TimeZone'), current_setting('DateStyle'), current_setting('default_transaction_isolation'), current_setting('search_path'), current_setting('bytea_output'), current_setting('lock_timeout'))",
	}
	onServers(t, func(t *testing.T, server *teststore.Server) {
		name := server.Dialect.String()
		s := server.Store(t)
		var before []string
		each := func(f func(query func(string) string, exec func(string))) {
			for range 12 - s.DB.Stats().InUse { // all connections that there may be but the two that the store has
				conn, err := s.DB.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				f(func(q string) (answer string) {
					if err := conn.QueryRowContext(t.Context(), q).Scan(&answer); err != nil {
						t.Error(err)
					}
					return answer
				}, func(q string) {
					if _, err := conn.ExecContext(t.Context(), q); err != nil {
						t.Error(err)
					}
				})
			}
		}
		each(func(query func(string) string, exec func(string)) {
			for _, p := range poison[name] {
				exec(p)
			}
			before = append(before, query(asked[name]))
		})

		long := claimOf(strings.Repeat("k", 300))
		if _, err := s.Claim(t.Context(), long); !errors.Is(err, driver.ErrTooLong) {
			t.Errorf("a key of 300 bytes: %v", err)
		}
		var wg sync.WaitGroup
		for n := range 20 { // more than there are sessions, all at once
			wg.Go(func() {
				c := claimOf(fmt.Sprint("k", n))
				got := claims(t, s, c, driver.GotClaim)
				if err := s.Renew(t.Context(), renewalOf(c, got)); err != nil {
					t.Error(err)
				}
				claims(t, s, claimOf(c.Key), driver.InFlight)
				ends(t, s, c, got, true)
			})
		}
		wg.Wait()
		other := server.Another(t, s.Prefix)
		for n := range 20 {
			claims(t, other, claimOf(fmt.Sprint("k", n)), driver.Done) // committed, and seen by others
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for range s.DB.Stats().Idle {
			conn, err := s.DB.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			var now string
			if err := conn.QueryRowContext(t.Context(), asked[name]).Scan(&now); err != nil || !slices.Contains(before, now) {
				t.Errorf("a session was left with %q, %v; the application set %q", now, err, before[0])
			}
		}
	})
}

// TestCaseB060NoTenant: records without a tenant are as unique as others.
func TestCaseB060NoTenant(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		s := server.Store(t)
		none := func() driver.Claim {
			c := claimOf("k")
			c.Scope.Tenant = "" // which is how no tenant is said: the two are the same
			c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
			return c
		}
		claims(t, s, none(), driver.GotClaim)
		claims(t, s, none(), driver.InFlight)
		claims(t, s, claimOf("k"), driver.GotClaim) // another tenant's
		id := claimOf("by hand").ID
		byHand := strings.Replace(insertRow(s), "'', '', ''", "'', NULL, ''", 1)
		if _, err := server.Admin.ExecContext(t.Context(), byHand, id[:]); err == nil {
			t.Error("the table took a tenant that is NULL")
		}
		if _, err := server.Admin.ExecContext(t.Context(), insertRow(s), id[:]); err != nil {
			t.Errorf("and refuses the same without: %v", err)
		}
	})
}

// TestCaseB062NothingOfASession: no statement needs a session that lasts. The whole suite runs through a real pooler in
// TestWays; here one session serves all.
func TestCaseB062NothingOfASession(t *testing.T) {
	t.Parallel()
	url := teststore.PgBouncer(t, teststore.PostgresURL())
	s := teststore.PostgresAt(t, url, "").Store(t)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for i := range 10 {
				if err := runOnce(t.Context(), s, fmt.Sprint(n, "-", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	bad := regexp.MustCompile(`(?im)pg_(try_)?advisory|^\s*(SET|PREPARE|LISTEN|DECLARE)\b|\bTEMP(ORARY)? TABLE|set_config\([^()]*, false\)`)
	for _, dir := range []string{"sql/postgres", "migrations/postgres"} {
		list, err := os.ReadDir(dir)
		if err != nil || len(list) == 0 {
			t.Fatal(err)
		}
		for _, f := range list {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if found := bad.Find(text); found != nil {
				t.Errorf("%s needs its session: %s", f.Name(), found)
			}
		}
	}
}
