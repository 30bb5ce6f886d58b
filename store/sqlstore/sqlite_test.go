package sqlstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/store/sqlstore"
)

const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"

func openFile(tb testing.TB, path string) *sqlstore.Store {
	tb.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+pragmas)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := sqlstore.Open(context.Background(), db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(); _ = db.Close() })
	return s
}

func claimOf(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Scope: driver.Scope{Tenant: "t"}, Operation: "pay", Key: text, Fingerprint: sum,
		Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 5}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	_, _ = rand.Read(c.Owner[:])
	return c
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openFile(t, filepath.Join(t.TempDir(), "o.db"))
	c := claimOf("k\x00\xff")
	got, err := s.Claim(ctx, c)
	if err != nil || got.Verdict != driver.GotClaim {
		t.Fatal(got.Verdict, err)
	}
	fin, err := s.Finish(ctx, driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte{}}}})
	if err != nil || !fin.Applied {
		t.Fatal(fin, err)
	}
	again, err := s.Claim(ctx, claimOf("k\x00\xff"))
	if err != nil || again.Verdict != driver.Done || again.Record.Result.Data == nil || again.Record.Key != c.Key {
		t.Fatalf("%+v %v", again, err)
	}
}
