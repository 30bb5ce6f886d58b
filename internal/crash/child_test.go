//go:build unix

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/store/storetest"
)

// The test binary plays the process that dies, or is stopped, at the point that one of these variables says.
const (
	crashVar = "ONCEWARD_CRASH_AT"
	stopVar  = "ONCEWARD_STOP_AT"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(crashVar); at != "" {
		child(at, 0, func(*process) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		})
		return
	}
	if at := os.Getenv(stopVar); at != "" {
		child(at, stopLease, stopSelf)
		return
	}
	// These tests wait for disks and processes far more than they compute. A -parallel of the caller's still rules.
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
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

// report is what a child that gets to its end says of it.
type report struct {
	Answer     string
	Err        string
	Recorded   bool
	Superseded bool   // by the error of the call
	StepLost   bool   // the last step said that the lease is lost
	Cause      string // why the work's context was cancelled
}

// child runs the work once, tells each point before it passes it, and does what is to be done at the point at.
func child(at string, lease time.Duration, act func(*process)) {
	n, err := strconv.Atoi(at)
	if err != nil {
		standalone{}.Fatalf("%v", err)
	}
	var p *process
	ps := &points{at: n, say: func(name string) { fmt.Println(name) }}
	ps.act = func() error { act(p); return nil }
	p = onSQLite(standalone{}, os.Args[1]).process(standalone{}, ps, lease)
	answer, info, err := p.do(context.Background())
	r := report{Answer: answer, Recorded: info.Recorded, Superseded: errors.Is(err, onceward.ErrSuperseded), StepLost: errors.Is(p.step, onceward.ErrLeaseLost)}
	if err != nil {
		r.Err = err.Error()
	}
	if p.ctx != nil {
		r.Cause = fmt.Sprint(context.Cause(p.ctx))
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		standalone{}.Fatalf("%v", err)
	}
}

func childAt(t *testing.T, variable string, at int, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir) //nolint:gosec // this very binary
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(at))
	cmd.Stderr = os.Stderr
	return cmd
}
