package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onceward/onceward/internal/cli"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/key"
)

// hangsUp is an upstream that takes a request and closes its connection.
func hangsUp(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(srv.Close)
	return srv.URL
}

func digest(t *testing.T, text string) string {
	t.Helper()
	k, err := key.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k.Digest()
}

func run(t *testing.T, args ...string) {
	t.Helper()
	var out, errOut strings.Builder
	if status := cli.Run(context.WithoutCancel(t.Context()), args, strings.NewReader(""), &out, &errOut); status != 0 {
		t.Fatalf("%v: exit %d: %s", args, status, errOut.String())
	}
}

// stop ends a process and returns what it logged.
func (p *process) stop(t *testing.T) string {
	t.Helper()
	_ = p.Process.Signal(syscall.SIGTERM)
	if status := p.end(t); status != 0 {
		t.Fatalf("exit status %d\n%s", status, p.log)
	}
	return p.log.String()
}

// TestUnknownIsToldAndSettled: the log says that an outcome became unknown, once; what a person says of it is what
// duplicates get, to the byte.
func TestUnknownIsToldAndSettled(t *testing.T) {
	t.Parallel()
	db, answerFile := filepath.Join(t.TempDir(), "o.db"), filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(answerFile, []byte("paid, says ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, hangsUp(t), db)
	for _, k := range []string{"yes", "plain", "no", "free"} {
		for n := range 2 {
			want := http.StatusConflict
			if n == 0 {
				want = http.StatusBadGateway
			}
			if a := post(t.Context(), p.url+"/pay", k); a.status != want || !strings.Contains(a.body, "outcome_unknown") {
				t.Fatalf("%+v", a)
			}
		}
	}
	resolve := func(args ...string) {
		t.Helper()
		run(t, append([]string{"records", "resolve", "--store", "sqlite:" + db, "--by", "ann", "--why", "asked"}, args...)...)
	}
	resolve(digest(t, "yes"), "--happened", answerFile, "--http-status", "201", "--content-type", "text/plain; charset=utf-8")
	resolve("plain", "--happened", answerFile)
	resolve("no", "--final", "the card was refused")
	resolve("free", "--did-not")

	a := post(t.Context(), p.url+"/pay", "yes")
	if a.status != 201 || a.body != "paid, says ann\n" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("happened: %+v", a)
	}
	if a := post(t.Context(), p.url+"/pay", "plain"); a.status != 200 || a.body != "paid, says ann\n" || a.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("happened, by default: %+v", a)
	}
	if a := post(t.Context(), p.url+"/pay", "no"); a.status != 409 || !strings.Contains(a.body, `"duplicate"`) || !strings.Contains(a.body, "the card was refused") {
		t.Errorf("final: %+v", a)
	}
	if a := post(t.Context(), p.url+"/pay", "free"); a.status != 502 {
		t.Errorf("did not: %+v", a)
	}
	told := map[string]int{}
	for line := range strings.SplitSeq(p.stop(t), "\n") {
		if !strings.Contains(line, "became unknown") {
			continue
		}
		for _, want := range []string{"level=WARN", "operation=http", "request_id=", "reason="} {
			if !strings.Contains(line, want) || strings.Contains(line, `request_id=""`) {
				t.Errorf("no %s in %s", want, line)
			}
		}
		for _, k := range []string{"yes", "plain", "no", "free"} {
			if strings.Contains(line, "key="+digest(t, k)) {
				told[k]++
			}
		}
	}
	if told["yes"] != 1 || told["plain"] != 1 || told["no"] != 1 || told["free"] != 2 {
		t.Errorf("told %v", told)
	}
}

// TestSecondSignalStopsAtOnce: who can't wait for the drain says so again.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db, "--drain", "1h")
	go post(t.Context(), p.url+"/slow", "K")
	<-up.entered
	_ = p.Process.Signal(syscall.SIGTERM)
	untilRefused(t, p.url)
	_ = p.Process.Signal(os.Interrupt)
	if status := p.end(t); status != 8 {
		t.Fatalf("exit status %d\n%s", status, p.log)
	}
	for _, want := range []string{"attempts=1", "a second signal stops at once", "stopped by a second signal"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no %q in\n%s", want, p.log)
		}
	}
}

func TestWithoutAdminAddressInMemory(t *testing.T) {
	t.Parallel()
	p := start(t, newSlow(t).URL, "unused", "--admin-listen", "", "--store", "memory:")
	if a := post(t.Context(), p.url+"/pay", "K"); a.status != 201 {
		t.Fatalf("%+v", a)
	}
	log := p.stop(t)
	for _, want := range []string{"admin=off", `level=WARN msg="onceward keeps its records in memory: they end with the process`, `scope="single tenant (--single-tenant)"`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
}

// TestAdminAddressOffByFile: the file can turn it off too; a flag decides over it.
func TestAdminAddressOffByFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("admin_listen: \"\"\nscope: header:X-Account\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, newSlow(t).URL, filepath.Join(t.TempDir(), "o.db"), "--config", file)
	if p.admin == "http://off" {
		t.Fatal("the flag did not decide")
	}
	if a := post(t.Context(), p.url+"/pay", "K"); a.status != 201 {
		t.Fatalf("--single-tenant did not decide over the file's scope: %+v", a)
	}
	p.stop(t)
}

// TestStoreIsForItsOwner: keys and answers are nobody else's to read.
func TestStoreIsForItsOwner(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "o.db")
	p := start(t, newSlow(t).URL, db)
	if a := post(t.Context(), p.url+"/pay", "K"); a.status != 201 {
		t.Fatalf("%+v", a)
	}
	files, err := filepath.Glob(db + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	p.stop(t)
}

// TestRequestIDAsKey: where the file makes the X-Request-Id a key, only a client's is one, and logs have its digest.
func TestRequestIDAsKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("routes:\n  - match: /pay\n    operation: pay\n    key: [header:x-request-id]\n    require_key: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, hangsUp(t), filepath.Join(t.TempDir(), "o.db"), "--config", file)
	for range 2 {
		if a := post(t.Context(), p.url+"/pay", "unused"); a.status != 400 || !strings.Contains(a.body, "key_missing") {
			t.Errorf("%+v", a)
		}
	}
	for _, status := range []int{502, 409} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/pay", nil)
		r.Header.Set("X-Request-Id", "secret")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
	}
	if log := p.stop(t); strings.Contains(log, "secret") || strings.Count(log, "request_id="+digest(t, "secret")) != 2 {
		t.Error(log)
	}
}

// TestBasicUserIsWarnedOf: a name without its password is no caller that somebody has checked.
func TestBasicUserIsWarnedOf(t *testing.T) {
	t.Parallel()
	p := start(t, newSlow(t).URL, "unused", "--store", "memory:", "--single-tenant=false", "--scope", "basic:user")
	if log := p.stop(t); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "does not check the password") {
		t.Error(log)
	}
}

func get(t *testing.T, target string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// TestServeOnServers: the gateway keeps its records where its flags say, is ready there, and tells nobody the password.
func TestServeOnServers(t *testing.T) {
	t.Parallel()
	postgres, mysql := teststore.Postgres(t, ""), teststore.MySQL(t, "")
	for name, flags := range map[string][]string{
		"postgres": {"--store", postgres.DSN, "--schema", postgres.Schema, "--table-prefix", "gw_"},
		"mysql":    {"--store", mysqlURL(t, mysql.DSN, mysql.Schema), "--table-prefix", "gw_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, append([]string{"migrate", "up"}, flags...)...)
			p := start(t, newSlow(t).URL, "unused", flags...)
			for _, status := range []string{"executed", "replayed"} {
				if a := post(t.Context(), p.url+"/pay", "K"); a.status != 201 || a.header.Get("Idempotency-Status") != status {
					t.Errorf("%+v", a)
				}
			}
			for range 2 {
				if a := get(t, p.admin+"/readyz"); a.status != 200 {
					t.Errorf("not ready: %+v", a)
				}
			}
			if log := p.stop(t); !strings.Contains(log, "store="+name+"://") && !strings.Contains(log, `store="`+name+"://") {
				t.Error(log)
			}
		})
	}
}
