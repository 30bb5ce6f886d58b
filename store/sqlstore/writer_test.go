package sqlstore

import (
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
)

// rig is a store in a file, and another connection to it.
type rig struct {
	*Store
	*embedded
	db   *sql.DB
	path string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "o.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.Close(), db.Close() })
	return &rig{s, s.runner.(*embedded), db, path}
}

// lock takes the file's write lock as another process would, and returns how to give it back.
func (r *rig) lock(t *testing.T) (unlock func()) {
	t.Helper()
	conn, err := r.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

// queued waits until n riders wait behind the leader.
func (r *rig) queued(n int) {
	for {
		r.group.mu.Lock()
		waiting := len(r.group.waiting)
		r.group.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// commits counts the transactions in the write-ahead log: a frame that ends one carries the size of the database. The log
// must not have started again.
func (r *rig) commits(t *testing.T) (n int) {
	t.Helper()
	log, err := os.ReadFile(r.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	page := int(binary.BigEndian.Uint32(log[8:]))
	salts := log[16:24]
	for frame := log[32:]; len(frame) >= 24+page; frame = frame[24+page:] {
		if string(frame[8:16]) == string(salts) && binary.BigEndian.Uint32(frame[4:]) != 0 {
			n++
		}
	}
	return n
}

func claim(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Operation: "pay", Key: text, Fingerprint: sum,
		Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 5}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	_, _ = rand.Read(c.Owner[:])
	return c
}

func finish(c driver.Claim, got driver.Claimed) driver.Finish {
	return driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte(c.Key)}}}
}

// TestWritesShareACommit counts commits in the log itself: 64 claims that wait are one, a call that is alone is one, a
// replay is none.
func TestWritesShareACommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before, unlock := r.commits(t), r.lock(t)
	var wg sync.WaitGroup
	for i := range 65 {
		wg.Go(func() {
			if got, err := r.Claim(t.Context(), claim(fmt.Sprint(i))); err != nil || got.Verdict != driver.GotClaim {
				t.Errorf("%+v %v", got.Verdict, err)
			}
		})
	}
	r.queued(64) // one leads, and waits for the lock
	unlock()
	wg.Wait()
	if n := r.commits(t) - before; n != 2 {
		t.Errorf("65 claims made %d commits", n)
	}

	before = r.commits(t)
	c := claim("alone")
	got, err := r.Claim(t.Context(), c)
	if n := r.commits(t) - before; err != nil || n != 1 {
		t.Errorf("a claim made %d commits: %v", n, err)
	}
	if done, err := r.Finish(t.Context(), finish(c, got)); err != nil || !done.Applied {
		t.Errorf("%+v %v", done, err)
	}
	if n := r.commits(t) - before; n != 2 {
		t.Errorf("claim and finish made %d commits", n)
	}
}

// TestAnswersDoNotWaitForTheWriter: what needs no write is answered while another process holds the write lock.
func TestAnswersDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	done, open := claim("done"), claim("open")
	got, err := r.Claim(t.Context(), done)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), finish(done, got)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Claim(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	before := r.commits(t)
	unlock := r.lock(t)
	defer unlock()
	other := claim("done")
	other.Fingerprint, _ = fingerprint.Of("something else")
	for name, c := range map[string]struct {
		claim driver.Claim
		want  driver.Verdict
	}{
		"replay": {claim("done"), driver.Done}, "in flight": {claim("open"), driver.InFlight},
		"mismatch": {other, driver.Mismatch}, "its own claim again": {open, driver.GotClaim},
	} {
		if got, err := r.Claim(t.Context(), c.claim); err != nil || got.Verdict != c.want {
			t.Errorf("%s: %d %v", name, got.Verdict, err)
		}
	}
	if _, err := r.Get(t.Context(), done.ID); err != nil {
		t.Error(err)
	}
	if n := r.commits(t) - before; n != 0 {
		t.Errorf("answers made %d commits", n)
	}
}

// TestOneBadRiderFailsAlone: the finish of a damaged record, a lost lease and a panic ride with good ones.
func TestOneBadRiderFailsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 8
	claims, got := make([]driver.Claim, n), make([]driver.Claimed, n)
	for i := range n {
		claims[i] = claim(fmt.Sprint(i))
		var err error
		if got[i], err = r.Claim(t.Context(), claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.db.ExecContext(t.Context(), "UPDATE onceward_records SET owner = x'00' WHERE id = ?", claims[3].ID[:]); err != nil {
		t.Fatal(err)
	}
	unlock := r.lock(t)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = r.Claim(t.Context(), claim("leader")) })
	for led := false; !led; runtime.Gosched() {
		r.group.mu.Lock()
		led = r.group.busy
		r.group.mu.Unlock()
	}
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			done, err := r.Finish(t.Context(), finish(claims[i], got[i]))
			if errs[i] = err; err == nil && !done.Applied {
				t.Errorf("%d was not applied", i)
			}
		})
	}
	var lost, panicked error
	wg.Go(func() {
		lost = r.Renew(t.Context(), driver.Renewal{ID: claims[0].ID, Owner: driver.Owner{1}, Fence: 1})
	})
	wg.Go(func() { panicked = r.group.do(t.Context(), work(func() error { panic("a rider") })) })
	r.queued(n + 2)
	unlock()
	wg.Wait()
	for i, err := range errs {
		if (err != nil) != (i == 3) {
			t.Errorf("rider %d: %v", i, err)
		}
		snap, err := r.Get(t.Context(), claims[i].ID)
		if i != 3 && (err != nil || snap.Record.Status != driver.Success) {
			t.Errorf("record %d: %v %v", i, snap.Record.Status, err)
		}
	}
	if !errors.Is(lost, driver.ErrLeaseLost) || panicked == nil {
		t.Errorf("%v, %v", lost, panicked)
	}
}

// TestWriterComesBack: a broken connection costs one call at most.
func TestWriterComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.writer.session.conn.Close(); err != nil { // as if the driver had called it bad
		t.Fatal(err)
	}
	_, first := r.Claim(t.Context(), claim("k"))
	got, err := r.Claim(t.Context(), claim("k2"))
	if err != nil || got.Verdict != driver.GotClaim {
		t.Fatalf("after %v: %d %v", first, got.Verdict, err)
	}
}

// TestClosedStoreRefuses: Close waits for what is under way; afterwards every call says so, and nothing hangs.
func TestClosedStoreRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unlock := r.lock(t)
	answered, closed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.Claim(t.Context(), claim("k")); answered <- err }()
	for led := false; !led; runtime.Gosched() {
		r.group.mu.Lock()
		led = r.group.busy
		r.group.mu.Unlock()
	}
	go func() { closed <- r.Close() }()
	for begun := false; !begun; runtime.Gosched() {
		r.group.mu.Lock()
		begun = r.group.closed != nil
		r.group.mu.Unlock()
	}
	unlock()
	if err := errors.Join(<-answered, <-closed); err != nil {
		t.Fatal(err)
	}
	_, claimErr := r.Claim(t.Context(), claim("k"))
	_, finishErr := r.Finish(t.Context(), finish(claim("k"), driver.Claimed{}))
	_, getErr := r.Get(t.Context(), claim("k").ID)
	_, scanErr := r.Scan(t.Context(), driver.Scan{Limit: 1})
	for _, err := range []error{claimErr, finishErr, getErr, scanErr, r.Renew(t.Context(), driver.Renewal{})} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := r.db.Stats().InUse; n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

// TestTimesAsText: the short way to read a time is time.Parse.
func TestTimesAsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"2026-12-01 01:02:03.004005", "1970-01-01 00:00:00.000000", "2024-02-29 23:59:59.999999", "0001-01-01 00:00:00.000000",
		"", "2026-12-01", "2026-12-01T01:02:03.004005", "2026-13-01 01:02:03.004005", "2026-02-30 01:02:03.004005",
		"2026-12-01 24:02:03.004005", "2026-12-01 01:60:03.004005", "2026-12-01 01:02:60.004005", "2026-12-01 01:02:03.00400x",
		"2026-00-01 01:02:03.004005", "2026-12-00 01:02:03.004005", "2026-12-01 01:02:03.0040051",
	} {
		want, err := time.Parse(timeLayout, text)
		got, ok := parseTime(text)
		if ok != (err == nil) || ok && !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v %v", text, got, ok, want, err)
		}
	}
}
