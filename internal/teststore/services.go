package teststore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Services finds the servers that tests share, or starts installed ones in the hidden folder .services of the project, where they
// stay for the next time. It tells of what it does on notes.
type Services struct {
	Root  string
	Notes io.Writer
}

// service is a server that tests share.
type service struct {
	name     string // its folder
	title    string // for people
	variable string // that says where it is
	driver   string // of database/sql
	usual    string // its DSN where nothing else is said
	pid      string // its file
	new      func(dir string, settings []string) (*daemon, error)
}

func services() []service {
	return []service{
		{"postgres", "PostgreSQL", postgresVar, "pgx", postgresDefault, "data/postmaster.pid", newPostgres},
		{"mariadb", "MariaDB", mysqlVar, "mysql", mysqlDefault, "pid", newMariaDB},
	}
}

// Missing returns Debian's names of the packages with programs that tests need and that are not installed.
func Missing() (packages []string) {
	for _, need := range []struct {
		program []string
		pack    string
	}{
		{postgres, "postgresql"}, {mariaDB, "mariadb-server"}, {installDB, "mariadb-server"}, {pooler, "pgbouncer"},
	} {
		if program(need.program...) == "" && (len(packages) == 0 || packages[len(packages)-1] != need.pack) {
			packages = append(packages, need.pack)
		}
	}
	return packages
}

// Find returns the variables to set, as NAME=value, for servers that answer.
func (s *Services) Find() (variables []string, err error) {
	for _, v := range services() {
		dsn, err := s.find(&v)
		if err != nil {
			return nil, err
		}
		variables = append(variables, v.variable+"="+dsn)
	}
	return variables, nil
}

func (s *Services) find(v *service) (dsn string, err error) {
	if said := os.Getenv(v.variable); said != "" {
		if err := usable(v.driver, said); err != nil {
			return "", fmt.Errorf("%s is set, and %s is not to be had there: %w", v.variable, v.title, err)
		}
		return said, nil
	}
	if usable(v.driver, v.usual) == nil {
		return v.usual, nil
	}
	if own, started := s.started(v); started && usable(v.driver, dsnOf(own)) == nil {
		return dsnOf(own), nil
	}
	dir := s.dir(v)
	fmt.Fprintf(s.Notes, "onceward: no %s for tests on its usual port: starting one in %s\n", v.title, dir)
	d, err := v.new(dir, nil)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(strconv.Itoa(d.port)), 0o644); err != nil {
		return "", err
	}
	return dsnOf(d), d.start(false)
}

// usable reports whether a server answers and lets the tests have schemas of their own.
func usable(driver, dsn string) error {
	if err := answers(driver, dsn)(context.Background()); err != nil {
		return err
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	name := schemaName()
	if _, err := db.ExecContext(context.Background(), "CREATE SCHEMA "+name); err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), "DROP SCHEMA "+name)
	return err
}

// Stop ends the servers that Find started.
func (s *Services) Stop() (err error) {
	for _, v := range services() {
		own, started := s.started(&v)
		if !started || usable(v.driver, dsnOf(own)) != nil {
			continue // its pid may be another program's by now
		}
		fmt.Fprintf(s.Notes, "onceward: ending %s in %s\n", v.title, s.dir(&v))
		err = errors.Join(err, stop(filepath.Join(s.dir(&v), v.pid)))
	}
	return err
}

func stop(pidFile string) error {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Signal(syscall.SIGTERM)
}

// started returns the server that an earlier Find started.
func (s *Services) started(v *service) (own *daemon, ok bool) {
	port, err := os.ReadFile(filepath.Join(s.dir(v), "port"))
	if err != nil {
		return nil, false
	}
	own = &daemon{program: v.name}
	own.port, err = strconv.Atoi(string(port))
	return own, err == nil
}

// dir is in the project, or where the servers' user gets to.
func (s *Services) dir(v *service) string {
	if reachable(s.Root) {
		return filepath.Join(s.Root, ".services", v.name)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("onceward-services-%08x", crc32.ChecksumIEEE([]byte(s.Root))), v.name)
}
