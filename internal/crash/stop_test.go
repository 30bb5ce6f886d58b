//go:build unix

package crash

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// stopLease is short, because it passes for real: what wakes up goes by its own clock.
const stopLease = 1500 * time.Millisecond

// stopSelf stops the process, and goes on when the work's context has been cancelled. No heartbeat is in the store meanwhile:
// who is stopped with the file's lock in hand stops everybody.
func stopSelf(p *process) {
	p.points.quiet.Lock()
	defer p.points.quiet.Unlock()
	if err := p.ctx.Err(); err != nil {
		standalone{}.Fatalf("cancelled before it was stopped: %v", err)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	select {
	case <-p.ctx.Done():
	case <-time.After(patience):
		standalone{}.Fatalf("the context is not cancelled")
	}
}

// stopped is a process that is stopped at a point of its work.
type stopped struct {
	*exec.Cmd
	out io.Reader
}

// stop starts a process, and returns when it is stopped at the point of that name.
func (w *world) stop(t *testing.T, name string) *stopped {
	t.Helper()
	cmd := childAt(t, stopVar, number(t, name), w.dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var ws syscall.WaitStatus
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		_, err = syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
	}
	if err != nil || !ws.Stopped() {
		t.Fatalf("it was not stopped: %v %v", ws, err)
	}
	return &stopped{cmd, out}
}

// wake lets the process go on to its end, and returns what it says.
func (s *stopped) wake(t *testing.T) (r report) {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(s.out); lines.Scan(); {
		last = lines.Text()
	}
	if err := errors.Join(s.Wait(), json.Unmarshal([]byte(last), &r)); err != nil {
		t.Fatalf("%v: %q", err, last)
	}
	if r.Cause != onceward.ErrLeaseLost.Error() {
		t.Errorf("the context was cancelled by %q", r.Cause)
	}
	return r
}

// passed waits until a lease and its grace have passed.
func (w *world) passed(t *testing.T) {
	t.Helper()
	late := time.After(patience)
	for {
		if snap := w.record(t); state.Lapsed(&snap.Record, snap.Now) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatal("the lease goes on")
		}
	}
}

// want demands a verdict, and how often the sender of messages was called.
func (w *world) want(t *testing.T, want string, calls int) {
	t.Helper()
	verdict, wrong := w.verdict(t)
	if n := w.tally(t).Calls; verdict != want || wrong != nil || n != calls {
		t.Errorf("%s %q, %d calls of the sender; want %s and %d", verdict, wrong, n, want, calls)
	}
}

// TestStoppedAndNobodyClaimed: who wakes up after its lease has its context cancelled, begins nothing more, and is believed
// what it knows: a step's result, or the end. That a janitor has swept meanwhile, and that a caller was told that the outcome
// is unknown, changes nothing.
func TestStoppedAndNobodyClaimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point   string
		ended   bool // the work; elsewhere a later call goes on with what is remembered
		unclear bool // until it wakes up
	}{
		{"after bank", false, true},
		{"before progress bank done", false, true},
		{"after sms", false, false},
		{"before finish", true, false},
	} {
		for name, swept := range map[string]bool{"": false, ", swept": true} {
			t.Run(c.point+name, func(t *testing.T) {
				t.Parallel()
				w := onSQLite(t, t.TempDir())
				s := w.stop(t, c.point)
				w.passed(t)
				if swept {
					if rep := w.sweep(t); rep.Unclear+rep.Repeatable != 1 || (rep.Unclear == 1) != c.unclear {
						t.Errorf("%+v", rep)
					}
				}
				if swept && c.unclear {
					p := w.process(t, &points{}, stopLease)
					if v, _, err := p.do(t.Context()); !errors.Is(err, onceward.ErrUnknown) {
						t.Errorf("while it is stopped: %q %v", v, err)
					}
					p.end(t)
				}
				r := s.wake(t)
				if is := w.tally(t); is.Transfers != 1 || is.Settled != map[bool]int{true: 1}[c.ended] {
					t.Errorf("it did %+v", is)
				}
				if (r.Err == "") != c.ended || !r.Recorded || r.Superseded {
					t.Errorf("it was told %+v", r)
				}
				rec := w.record(t).Record
				if c.ended != (rec.Status == driver.Success) || rec.Unclear() {
					t.Errorf("the record says %v %v %q", rec.Status, rec.Failure, rec.Error)
				}
				w.want(t, done, 1)
			})
		}
	}
}

// TestStoppedAndSomebodyClaimed: who wakes up then has its context cancelled, and is refused, whatever it brings. The sender,
// which honours keys, is called twice where the first answer came too late, and sends once.
func TestStoppedAndSomebodyClaimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point string
		calls int
	}{
		{"after sms", 2},
		{"before finish", 1},
	} {
		t.Run(c.point+", claimed", func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, t.TempDir())
			s := w.stop(t, c.point)
			w.passed(t)
			p := w.process(t, &points{}, 0)
			defer p.end(t)
			p.first = func() {
				r := s.wake(t)
				if !r.Superseded || r.Recorded || r.Answer != "" || r.StepLost != (c.point == "after sms") {
					t.Errorf("it was told %+v", r)
				}
			}
			if v, info, err := p.do(t.Context()); err != nil || info.Attempt != 2 || !info.Takeover || !info.Recorded {
				t.Errorf("%q %+v %v", v, info, err)
			}
			w.want(t, done, c.calls)
		})
		t.Run(c.point+", finished", func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, t.TempDir())
			s := w.stop(t, c.point)
			w.passed(t)
			p := w.process(t, &points{}, 0)
			defer p.end(t)
			v, info, err := p.do(t.Context())
			if err != nil || info.Attempt != 2 || !info.Recorded {
				t.Errorf("%q %+v %v", v, info, err)
			}
			if r := s.wake(t); r.Answer != v || r.Err != "" || r.Recorded {
				t.Errorf("it was told %+v, want the result of the other: %q", r, v)
			}
			w.want(t, done, c.calls)
		})
	}
}
