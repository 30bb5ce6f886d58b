package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/onceward/onceward/internal/cli"
	"github.com/onceward/onceward/store/sqlstore"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"onceward": func() { os.Exit(cli.Main()) }})
}

// process is a gateway in a process of its own.
type process struct {
	*exec.Cmd
	url, admin string
	log        *strings.Builder
	drained    chan struct{} // the log is read to its end
}

var addresses = regexp.MustCompile(`listen=(\S+) admin=(\S+)`)

// start runs onceward serve and waits until it listens.
func start(t *testing.T, upstream, db string, args ...string) *process {
	t.Helper()
	bin, err := exec.LookPath("onceward") // testscript.Main put this test binary there under that name
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"serve", "--upstream", upstream, "--single-tenant", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--store", "sqlite:" + db}, args...)
	p := &process{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), bin, all...), log: &strings.Builder{}, drained: make(chan struct{})}
	pipe, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); <-p.drained; _ = p.Wait() })
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		p.log.WriteString(lines.Text() + "\n")
		if m := addresses.FindStringSubmatch(lines.Text()); m != nil {
			p.url, p.admin = "http://"+m[1], "http://"+m[2]
			break
		}
	}
	go func() {
		defer close(p.drained)
		for lines.Scan() {
			p.log.WriteString(lines.Text() + "\n")
		}
	}()
	if p.url == "" {
		<-p.drained
		t.Fatalf("the gateway did not start:\n%s", p.log)
	}
	return p
}

// end waits for the process and returns its exit status.
func (p *process) end(t *testing.T) int {
	t.Helper()
	<-p.drained
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func post(ctx context.Context, target, key string) answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("x"))
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// until asks again until good, as a client that obeys Retry-After would, but sooner.
func until(t *testing.T, target, key string, good func(answer) bool) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		a := post(ctx, target, key)
		if a.err == nil && good(a) {
			return a
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never came: last %+v", a)
		}
	}
}

// untilRefused waits until the process accepts no new connection.
func untilRefused(t *testing.T, target string) {
	t.Helper()
	address := strings.TrimPrefix(target, "http://")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return
		}
		_ = c.Close()
		<-tick.C
	}
}

// slow is an upstream whose first run of each path waits to be released.
type slow struct {
	*httptest.Server
	runs    atomic.Int64
	entered chan struct{}
	release chan struct{}
}

func newSlow(t *testing.T) *slow {
	t.Helper()
	s := &slow{entered: make(chan struct{}, 100), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see a client that hangs up
		n := s.runs.Add(1)
		if strings.HasPrefix(r.URL.Path, "/slow") && n == 1 {
			s.entered <- struct{}{}
			select {
			case <-s.release:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "paid %d", n)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestCaseB015DrainOnSIGTERM: a deploy in mid-request loses nothing.
func TestCaseB015DrainOnSIGTERM(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db, "--drain", "30s")
	got := make(chan answer, 1)
	go func() { got <- post(t.Context(), p.url+"/slow", "K") }()
	<-up.entered
	_ = p.Process.Signal(syscall.SIGTERM)
	untilRefused(t, p.url)
	close(up.release)
	if a := <-got; a.status != 201 || a.body != "paid 1" {
		t.Fatalf("the client in flight got %+v", a)
	}
	if status := p.end(t); status != 0 {
		t.Fatalf("exit status %d\n%s", status, p.log)
	}
	p = start(t, up.URL, db)
	if a := post(t.Context(), p.url+"/slow", "K"); a.body != "paid 1" || a.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("after the restart: %+v", a)
	}
	if n := up.runs.Load(); n != 1 {
		t.Fatalf("ran %d times", n)
	}
}

// TestCaseB015PastTheGrace: what does not end in time is left to lapse, and is recovered.
func TestCaseB015PastTheGrace(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db, "--drain", "200ms", "--lease", "500ms")
	go post(t.Context(), p.url+"/slow", "K")
	<-up.entered
	_ = p.Process.Signal(syscall.SIGTERM)
	if status := p.end(t); status != 8 {
		t.Fatalf("exit status %d\n%s", status, p.log)
	}
	p = start(t, up.URL, db, "--lease", "500ms")
	until(t, p.url+"/slow", "K", func(a answer) bool { return strings.Contains(a.body, "outcome_unknown") })
	if n := up.runs.Load(); n != 1 {
		t.Fatalf("ran %d times", n)
	}
}

// TestCaseB009KillInMidAttempt: the key answers in flight until its lease and grace are over, then as its policy says.
func TestCaseB009KillInMidAttempt(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(config, []byte("routes:\n  - match: \"POST /slow/again\"\n    operation: again\n    repeatable: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		runs       int64
		good       func(answer) bool
	}{
		{"not repeatable", "/slow", 1, func(a answer) bool { return a.status == 409 && strings.Contains(a.body, "outcome_unknown") }},
		{"repeatable", "/slow/again", 2, func(a answer) bool { return a.status == 201 && a.body == "paid 2" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
			args := []string{"--lease", "2s", "--config", config}
			p := start(t, up.URL, db, args...)
			go post(t.Context(), p.url+c.path, "K")
			<-up.entered
			_ = p.Process.Kill()
			p.end(t)
			p = start(t, up.URL, db, args...)
			if a := post(t.Context(), p.url+c.path, "K"); a.status != 409 || !strings.Contains(a.body, `"in_flight"`) || a.header.Get("Retry-After") == "" {
				t.Fatalf("at once after the restart: %+v", a)
			}
			until(t, p.url+c.path, "K", c.good)
			if n := up.runs.Load(); n != c.runs {
				t.Fatalf("ran %d times, want %d", n, c.runs)
			}
			// Whether the sweep or the duplicate found the dead attempt: it is told of once.
			if n := strings.Count(p.stop(t), "became unknown"); n != int(2-c.runs) {
				t.Errorf("told %d times\n%s", n, p.log)
			}
		})
	}
}

// TestKillLosesNothingFinished: every answer that a client got is there after kill -9, byte for byte.
func TestKillLosesNothingFinished(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db)
	type finished struct{ key, body string }
	results := make(chan finished, 10000)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				k := fmt.Sprintf("k-%d-%d", worker, i)
				a := post(ctx, p.url+"/pay", k)
				if a.err != nil {
					return
				}
				if a.status == 201 && a.header.Get("Idempotency-Status") == "executed" {
					results <- finished{k, a.body}
				}
			}
		})
	}
	for deadline := time.Now().Add(30 * time.Second); len(results) < 200 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	_ = p.Process.Kill()
	wg.Wait()
	stop()
	p.end(t)
	close(results)
	before := up.runs.Load()
	p = start(t, up.URL, db)
	n := 0
	for f := range results {
		n++
		if a := post(t.Context(), p.url+"/pay", f.key); a.body != f.body || a.header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("%s: %+v, first %q", f.key, a, f.body)
		}
	}
	if up.runs.Load() != before {
		t.Fatal("a finished key ran again")
	}
	t.Logf("%d answers survived", n)
}

func TestAdminAddress(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db)
	if a := post(t.Context(), p.url+"/pay", "K"); a.status != 201 {
		t.Fatalf("%+v", a)
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready",
		"/metrics": `onceward_requests_total{operation="http",outcome="executed"} 1`,
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin+path, nil)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		}
	}
}

// TestWhatCannotStart: what can't start says why, and what to do.
func TestWhatCannotStart(t *testing.T) {
	t.Parallel()
	up, dir := newSlow(t), t.TempDir()
	taken := strings.TrimPrefix(up.URL, "http://")
	newer := filepath.Join(dir, "newer.db")
	db, err := sql.Open("sqlite3", "file:"+newer)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE onceward_meta SET value = '99' WHERE name = 'schema'"); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_ = db.Close()
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"port taken":   {[]string{"--listen", taken}, 1, "is another program there already? choose another address"},
		"admin taken":  {[]string{"--listen", "127.0.0.1:0", "--admin-listen", taken}, 1, "--admin-listen"},
		"newer schema": {[]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--store", "sqlite:" + newer}, 1, "newer than this program"},
		"no folder":    {[]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--store", "sqlite:" + filepath.Join(dir, "no", "o.db")}, 6, "is not there"},
		"a folder":     {[]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--store", "sqlite:" + dir}, 6, "store"},
	} {
		var out, errOut strings.Builder
		args := append([]string{"serve", "--upstream", up.URL, "--single-tenant"}, c.args...)
		if status := cli.Run(t.Context(), args, strings.NewReader(""), &out, &errOut); status != c.status || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%s: exit %d, %s", name, status, errOut.String())
		}
	}
}
