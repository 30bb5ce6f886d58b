package teststore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Own is a server that a test started in a temporary folder, and may kill.
type Own struct {
	// DSN names no database of a test's own; Postgres and MySQL servers are made from it by PostgresAt and MySQLAt.
	DSN  string
	Addr string

	t      testing.TB
	daemon *daemon
}

// OwnPostgres starts a PostgreSQL server with settings like "wal_level=minimal". It keeps what it acknowledged across a
// kill, not across a power cut.
func OwnPostgres(t testing.TB, settings ...string) *Own {
	t.Helper()
	return own(t, func() (*daemon, error) { return newPostgres("", settings) })
}

// OwnMySQL starts a MariaDB server with settings like "read_only=1".
func OwnMySQL(t testing.TB, settings ...string) *Own {
	t.Helper()
	return own(t, func() (*daemon, error) { return newMariaDB("", settings) })
}

// Replica starts a PostgreSQL server that follows o.
func (o *Own) Replica(t testing.TB) *Own {
	t.Helper()
	return own(t, func() (*daemon, error) { return newReplica(o.daemon) })
}

func own(t testing.TB, made func() (*daemon, error)) *Own {
	t.Helper()
	d, err := made()
	if d != nil {
		t.Cleanup(func() {
			d.end(syscall.SIGQUIT) // at once, children too
			removeAll(t, d.dir)
		})
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	o := &Own{DSN: dsnOf(d), Addr: d.addr(), t: t, daemon: d}
	o.Start()
	return o
}

// Open returns a handle on the server, closed with the test.
func (o *Own) Open(t testing.TB) *sql.DB {
	t.Helper()
	driver := "mysql"
	if o.daemon.postgres() {
		driver = "pgx"
	}
	return (&Server{Driver: driver, DSN: o.DSN}).Open(t, 4)
}

// removeAll removes a folder that a server's children may still write to, for a moment.
func removeAll(t testing.TB, dir string) {
	t.Helper()
	var err error
	for range 20 {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%v", err)
}

// Start starts the server again, on the same port, and waits until it answers.
func (o *Own) Start() {
	o.t.Helper()
	if err := o.daemon.start(true); err != nil {
		o.t.Fatalf("%v", err)
	}
}

// Kill ends the server as kill -9 does.
func (o *Own) Kill() { o.daemon.end(syscall.SIGKILL) }

// Stop lets the server end in order, without waiting for its clients.
func (o *Own) Stop() {
	if o.daemon.postgres() {
		o.daemon.end(syscall.SIGINT) // fast; SIGTERM would wait for sessions
		return
	}
	o.daemon.end(syscall.SIGTERM)
}

func (d *daemon) postgres() bool { return filepath.Base(d.program) == "postgres" }

func dsnOf(d *daemon) string {
	if d.postgres() {
		return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", d.addr())
	}
	return fmt.Sprintf("root@tcp(%s)/", d.addr())
}

// newPostgres makes a database cluster at dir, if there is none, and its server.
func newPostgres(dir string, settings []string) (*daemon, error) {
	d, err := newDaemon(dir, program(postgres...))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(d.dir, "data", "PG_VERSION")); err != nil {
		if err := d.tool(beside(d.program, "initdb"), "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
			return d, err
		}
	}
	d.serve(settings)
	return d, nil
}

// serve says how the server of a cluster is started.
func (d *daemon) serve(settings []string) {
	d.args = []string{
		"-D", "data", "-p", fmt.Sprint(d.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "max_connections=200", "-c", "shared_buffers=64MB",
	}
	for _, s := range settings {
		d.args = append(d.args, "-c", s)
	}
	d.ready = answers("pgx", dsnOf(d))
}

// newReplica copies a running server.
func newReplica(of *daemon) (*daemon, error) {
	d, err := newDaemon("", of.program)
	if err != nil {
		return nil, err
	}
	err = d.tool(beside(of.program, "pg_basebackup"),
		"-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", dsnOf(of))
	d.serve([]string{"hot_standby=on"})
	return d, err
}

// newMariaDB makes a data folder in dir, if there is none, and its server.
func newMariaDB(dir string, settings []string) (*daemon, error) {
	d, err := newDaemon(dir, program(mariaDB...))
	if err != nil {
		return nil, err
	}
	install := program(installDB...)
	if install == "" {
		return d, errNotInstalled
	}
	data := filepath.Join(d.dir, "data")
	if _, err := os.Stat(filepath.Join(data, "mysql")); err != nil {
		if err := d.tool(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
			return d, err
		}
	}
	setup := filepath.Join(d.dir, "init.sql")
	const access = "CREATE OR REPLACE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
	if err := os.WriteFile(setup, []byte(access), 0o644); err != nil {
		return d, err
	}
	d.args = []string{
		"--no-defaults", "--datadir=" + data, "--bind-address=127.0.0.1", "--port=" + fmt.Sprint(d.port),
		"--socket=" + filepath.Join(d.dir, "s"), "--pid-file=" + filepath.Join(d.dir, "pid"), "--init-file=" + setup,
		"--skip-name-resolve", "--innodb-buffer-pool-size=32M", "--max-connections=300",
	}
	for _, s := range settings {
		d.args = append(d.args, "--"+s)
	}
	d.ready = answers("mysql", dsnOf(d))
	return d, nil
}

// answers reports whether a server does.
func answers(driver, dsn string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience/6)
		defer cancel()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		_, err = db.ExecContext(ctx, "SELECT 1")
		return err
	}
}
