package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/storetest"
)

// The test binary plays two other processes, chosen by this variable.
const roleVar = "ONCEWARD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "busy":
		busy(os.Args[1])
	case "racer":
		racer(os.Args[1])
	default:
		// These tests wait for disks and servers far more than they compute. A -parallel of the caller's still rules.
		if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
}

// standalone is a storetest.T for a process without a test.
type standalone struct{ storetest.T }

func (standalone) Helper()                  {}
func (standalone) Cleanup(func())           {}
func (standalone) Context() context.Context { return context.Background() }
func (standalone) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// busy claims and finishes with 64 callers and prints each key after its finish was answered, until it is killed.
func busy(path string) {
	f := teststore.OpenFile(standalone{}, path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for caller := range 64 {
		wg.Go(func() {
			for n := 0; ; n++ {
				k := fmt.Sprintf("%d-%d-%d", os.Getpid(), caller, n)
				if err := runOnce(context.Background(), f, k); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				_, _ = os.Stdout.WriteString(k + "\n")
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// racer claims 200 keys with 16 callers and prints those that it won.
func racer(path string) {
	f := teststore.OpenFile(standalone{}, path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for caller := range 16 {
		wg.Go(func() {
			for n := range 200 {
				k := fmt.Sprint("key-", (n+caller*13)%200)
				got, err := f.Claim(context.Background(), claimOf(k))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				if got.Verdict == driver.GotClaim {
					mu.Lock()
					fmt.Println(k)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

func role(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], path)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilledStoreKeepsWhatItAnswered: after kill -9 at a random moment under 64 callers every answered success is in the
// file, and the file is whole. 8 rounds here, 100 with ONCEWARD_LONG.
func TestKilledStoreKeepsWhatItAnswered(t *testing.T) {
	t.Parallel()
	rounds := 8
	if os.Getenv("ONCEWARD_LONG") != "" {
		rounds = 100
	}
	path := filepath.Join(t.TempDir(), "o.db")
	total := 0
	for range rounds {
		cmd := role(t, "busy", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var answered []string
		lines, left := bufio.NewScanner(out), 1+rand.IntN(500)
		for lines.Scan() { // a key is answered when its whole line came
			answered = append(answered, lines.Text())
			if left--; left == 0 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		total += len(answered)
		f := teststore.OpenFile(t, path)
		for _, k := range answered {
			snap, err := f.Get(t.Context(), claimOf(k).ID)
			if err != nil || snap.Record.Status != driver.Success || string(snap.Record.Result.Data) != k {
				t.Fatalf("%q was answered and is not there: %+v %v", k, snap.Record, err)
			}
		}
		var whole string
		if err := f.DB.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&whole); err != nil || whole != "ok" {
			t.Fatalf("the file is damaged: %s %v", whole, err)
		}
		_ = f.Close()
		_ = f.DB.Close()
	}
	t.Logf("%d answered successes survived %d kills", total, rounds)
}

// TestCaseB001ProcessesOnOneFile: every key is won by one caller of one process.
func TestCaseB001ProcessesOnOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "o.db")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[string]int{}
	for range 3 {
		wg.Go(func() {
			out, err := role(t, "racer", path).Output()
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, k := range strings.Fields(string(out)) {
				won[k]++
			}
		})
	}
	wg.Wait()
	if len(won) != 200 {
		t.Errorf("%d of 200 keys were won", len(won))
	}
	for k, n := range won {
		if n != 1 {
			t.Errorf("%s was won %d times", k, n)
		}
	}
}

// TestOtherProcessHoldsTheLock: a write that waits for another process is answered when that process is done.
func TestOtherProcessHoldsTheLock(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	conn, err := f.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- runOnce(t.Context(), f, "k") }()
	select {
	case err := <-answered:
		t.Fatalf("answered under somebody else's lock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-answered, conn.Close()); err != nil {
		t.Fatal(err)
	}
}
