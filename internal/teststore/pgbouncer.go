package teststore

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer starts a pooler in transaction mode before the PostgreSQL server at a URL, and returns the URL to reach the
// server through it: every transaction may run on another session, and prepared statements are not known.
func PgBouncer(t testing.TB, server string) string {
	t.Helper()
	d, err := newDaemon("", program(pooler...))
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		d.end(syscall.SIGKILL)
		_ = os.RemoveAll(d.dir)
	})
	to, err := pgx.ParseConfig(server)
	if err != nil {
		t.Fatalf("%v", err)
	}
	quoted := func(s string) string { return "'" + s + "'" }
	password := ""
	if to.Password != "" {
		password = " password=" + quoted(to.Password)
	}
	config := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
`, to.Host, to.Port, quoted(to.User), password, d.port)
	file := filepath.Join(d.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	if err := give(d.dir); err != nil {
		t.Fatalf("%v", err)
	}
	u := url.URL{
		Scheme: "postgres", User: url.User(to.User), Host: d.addr(), Path: "/" + to.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=exec",
	}
	d.args = []string{file}
	d.ready = answers("pgx", u.String())
	if err := d.start(true); err != nil {
		t.Fatalf("%v", err)
	}
	return u.String()
}
