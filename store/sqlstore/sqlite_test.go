package sqlstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/sqlstore"
	"github.com/onceward/onceward/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, teststore.SQLite(t))
}

func TestModel(t *testing.T) {
	t.Parallel()
	h := teststore.SQLite(t)
	storetest.Model(t, &h, uint64(time.Now().UnixNano()), storetest.Rounds(10_000))
}

func claimOf(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Scope: driver.Scope{Tenant: "t"}, Operation: "pay", Key: text, Fingerprint: sum,
		Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 5}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	_, _ = rand.Read(c.Owner[:])
	return c
}

// runOnce claims and finishes, as a guard does.
func runOnce(ctx context.Context, s driver.Store, text string) error {
	c := claimOf(text)
	got, err := s.Claim(ctx, c)
	if err != nil {
		return err
	}
	if got.Verdict != driver.GotClaim {
		return errors.New("no claim")
	}
	_, err = s.Finish(ctx, driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte(text)}}})
	return err
}

// TestCaseB060NullTenantIsRefusedByTheTable: uniqueness does not end where a column is NULL.
func TestCaseB060NullTenantIsRefusedByTheTable(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	if err := runOnce(t.Context(), f, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DB.ExecContext(t.Context(), "UPDATE onceward_records SET tenant = NULL"); err == nil {
		t.Fatal("the table took a NULL tenant")
	}
}

func TestSchemaOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]error{0: sqlstore.ErrSchemaOld, sqlstore.SchemaVersion - 1: sqlstore.ErrSchemaOld, sqlstore.SchemaVersion + 1: sqlstore.ErrSchemaNew} {
		f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
		if _, err := f.DB.ExecContext(t.Context(), "UPDATE onceward_meta SET value = ? WHERE name = 'schema'", strconv.Itoa(version)); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Open(t.Context(), f.DB, nil); !errors.Is(err, want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestManyOpenOneMissingFile: whoever is first makes the tables, under one id, whatever the handle's teststore.Pragmas are.
func TestManyOpenOneMissingFile(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "o.db")
		var wg sync.WaitGroup
		ids := make([]driver.StoreID, 12)
		for i := range ids {
			wg.Go(func() {
				db, err := sql.Open("sqlite3", "file:"+path)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				s, err := sqlstore.Open(t.Context(), db, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				got, err := s.Claim(t.Context(), claimOf("k"))
				if err != nil {
					t.Error(err)
				}
				ids[i] = got.Store
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == (driver.StoreID{}) {
				t.Fatalf("two stores in one file: %x and %x", id, ids[0])
			}
		}
	}
}

// TestTwoPrefixesInOneFile are two stores.
func TestTwoPrefixesInOneFile(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	other, err := sqlstore.Open(t.Context(), f.DB, &sqlstore.Options{TablePrefix: "other_"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	first, err1 := f.Claim(t.Context(), claimOf("k"))
	second, err2 := other.Claim(t.Context(), claimOf("k"))
	if err1 != nil || err2 != nil || second.Verdict != driver.GotClaim || first.Store == second.Store {
		t.Fatalf("%d %v, %d %v", first.Verdict, err1, second.Verdict, err2)
	}
}

// TestCaseB022BytesAsSent: any bytes come back exactly, and text is text at a prompt; what is none stands in hex.
func TestCaseB022BytesAsSent(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	for text, kind := range map[string]string{
		"order-42": "text", "订单-42": "text", "": "text", "007": "text", "1e3": "text", " a ": "text", "a|b%s'": "text",
		"2026-12-01T01:02:03Z": "text", "2026-12-01 01:02:03.000004": "text", "NULL": "text", "x'00'": "text",
		"a\x00b": "hex", "\x00": "hex", "\xff\xfe": "hex", "a\xc3": "hex", `\x41`: "hex",
	} {
		c := claimOf(text)
		c.Scope = driver.Scope{Namespace: text, Tenant: text, Caller: text}
		c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
		c.Request = []byte(text)
		got, err := f.Claim(t.Context(), c)
		if err != nil || got.Verdict != driver.GotClaim {
			t.Fatalf("%q: %d %v", text, got.Verdict, err)
		}
		fin, err := f.Finish(t.Context(), driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1, Outcome: driver.Outcome{
			Status: driver.Fail, Failure: driver.Final, Error: text, Result: driver.Result{Codec: text, Meta: []byte(text), Data: []byte(text)}}})
		if err != nil || !fin.Applied {
			t.Fatalf("%q: %+v %v", text, fin, err)
		}
		snap, err := f.Get(t.Context(), c.ID)
		r := snap.Record
		if err != nil || r.Key != text || r.Scope != c.Scope || r.Error != text || r.Result.Codec != text ||
			string(r.Result.Meta) != text || string(r.Result.Data) != text || r.Result.Data == nil || string(r.Request) != text {
			t.Errorf("%q came back as %+v %v", text, r, err)
		}
		var stored string
		err = f.DB.QueryRowContext(t.Context(), "SELECT iif(substr(idempotency_key, 1, 2) = '\\x', 'hex', typeof(idempotency_key)) FROM onceward_records WHERE id = ?", c.ID[:]).Scan(&stored)
		if err != nil || stored != kind {
			t.Errorf("%q is kept as %s, not %s: %v", text, stored, kind, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dsn  string
		opts *sqlstore.Options
		one  bool
	}{
		"no database":            {dsn: "file:" + text},
		"memory":                 {dsn: "file::memory:"},
		"read only":              {dsn: "file:" + filepath.Join(dir, "no.db") + "?mode=ro"},
		"read only, with tables": {dsn: "file:" + teststore.OpenFile(t, filepath.Join(dir, "ro.db")).Path + "?mode=ro"},
		"memory shared":          {dsn: "file:/shared?vfs=memdb"},
		"temporary":              {dsn: "file:"},
		"prefix":                 {dsn: "file:" + filepath.Join(dir, "p.db"), opts: &sqlstore.Options{TablePrefix: "x; DROP"}},
		"one connection":         {dsn: "file:" + filepath.Join(dir, "c.db"), one: true},
	} {
		db, err := sql.Open("sqlite3", c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		if c.one {
			db.SetMaxOpenConns(1)
		}
		if _, err := sqlstore.Open(t.Context(), db, c.opts); err == nil {
			t.Errorf("%s was taken", name)
		} else if !strings.HasPrefix(err.Error(), "onceward: ") {
			t.Errorf("%s: %v", name, err)
		}
		_ = db.Close()
	}
}

// TestFullDisk: a store without room refuses, loses nothing, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "o.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=max_page_count(24)")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for ; err == nil && done < 10_000; done++ {
		err = runOnce(t.Context(), s, strings.Repeat("k", 1+done%200)+string(rune('a'+done/200)))
	}
	done-- // the last one failed
	if !errors.Is(err, driver.ErrStoreFull) {
		t.Fatalf("after %d: %v", done, err)
	}
	if _, err := s.Get(t.Context(), claimOf("ka").ID); err != nil {
		t.Fatalf("a finished record is gone: %v", err)
	}
	_ = s.Close()
	_ = db.Close()
	f := teststore.OpenFile(t, path)
	if err := runOnce(t.Context(), f, "more"); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}

// TestManyCallersAndCancelledOnes: an answered claim is there; a caller that leaves the queue gets its own error.
func TestManyCallersAndCancelledOnes(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[string]bool{}
	for i := range 64 {
		wg.Go(func() {
			for n := range 5 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 {
					go cancel()
				}
				c := claimOf(string(rune('a'+i)) + string(rune('a'+n)))
				got, err := f.Claim(ctx, c)
				cancel()
				if err == nil && got.Verdict == driver.GotClaim {
					mu.Lock()
					won[c.Key] = true
					mu.Unlock()
				} else if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	var rows int
	if err := f.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM onceward_records").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows < len(won) || len(won) < 160 {
		t.Fatalf("%d rows, %d answered claims", rows, len(won))
	}
}
