package teststore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/migrate"
	"github.com/onceward/onceward/store/sqlstore"
	"github.com/onceward/onceward/store/storetest"
)

// Where the servers are. scripts/services starts what is missing and says what to set.
const (
	postgresVar     = "ONCEWARD_TEST_POSTGRES"
	postgresDefault = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
	mysqlVar        = "ONCEWARD_TEST_MYSQL"
	mysqlDefault    = "root@tcp(127.0.0.1:3306)/"
)

// PostgresURL returns the URL of the PostgreSQL server for tests.
func PostgresURL() string { return orDefault(postgresVar, postgresDefault) }

// MySQLDSN returns the DSN of the MySQL or MariaDB server for tests; it names no database.
func MySQLDSN() string { return orDefault(mysqlVar, mysqlDefault) }

func orDefault(name, value string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return value
}

// Server is a SQL server, and a schema in it that is the test's own.
type Server struct {
	Dialect dialect.Dialect
	Driver  string // of database/sql
	DSN     string
	Schema  string
	Admin   *sql.DB // a few connections beside the stores
	tables  atomic.Int64
}

// On is a store on a server with the handle behind it.
type On struct {
	*sqlstore.Store
	Server *Server
	DB     *sql.DB
	Prefix string
}

// Postgres returns the PostgreSQL server with a schema of the test's own. params are added to its URL.
func Postgres(t testing.TB, params string) *Server {
	t.Helper()
	return PostgresAt(t, PostgresURL(), params)
}

// PostgresAt is Postgres for another server.
func PostgresAt(t testing.TB, url, params string) *Server {
	t.Helper()
	return newServer(t, &Server{Dialect: dialect.PostgreSQL, Driver: "pgx", DSN: with(url, params)})
}

// MySQL returns the MySQL or MariaDB server with a database of the test's own. params are those of its DSN.
func MySQL(t testing.TB, params string) *Server {
	t.Helper()
	return MySQLAt(t, MySQLDSN(), params)
}

// MySQLAt is MySQL for another server.
func MySQLAt(t testing.TB, dsn, params string) *Server {
	t.Helper()
	return newServer(t, &Server{Dialect: dialect.MySQL, Driver: "mysql", DSN: with(dsn, params)})
}

// with adds parameters to a URL or DSN.
func with(dsn, params string) string {
	switch {
	case params == "":
		return dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + params
	}
	return dsn + "?" + params
}

func newServer(t testing.TB, s *Server) *Server {
	t.Helper()
	s.Schema = schemaName()
	s.Admin = s.Open(t, 4)
	drop := "DROP DATABASE " + s.Schema
	if s.Dialect == dialect.PostgreSQL {
		drop = "DROP SCHEMA " + s.Schema + " CASCADE"
	}
	if _, err := s.Admin.ExecContext(t.Context(), "CREATE SCHEMA "+s.Schema); err != nil {
		t.Fatalf("%s is not there for tests: %v\nscripts/services starts what is missing; %s and %s say where servers are", s.Dialect, err, postgresVar, mysqlVar)
	}
	t.Cleanup(func() {
		_, err := s.Admin.ExecContext(context.WithoutCancel(t.Context()), drop)
		for range 4 {
			if err != nil { // connections from before a restart
				_, err = s.Admin.ExecContext(context.WithoutCancel(t.Context()), drop)
			}
		}
		if err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// schemaName is nobody else's.
func schemaName() string {
	var bits [6]byte
	_, _ = rand.Read(bits[:])
	return "test_" + hex.EncodeToString(bits[:])
}

// Through returns the same schema of the same server behind a proxy. Admin goes around it.
func (s *Server) Through(t testing.TB) (*Proxy, *Server) {
	t.Helper()
	to := &Server{Dialect: s.Dialect, Driver: s.Driver, Schema: s.Schema, Admin: s.Admin}
	if s.Dialect == dialect.PostgreSQL {
		c, err := pgx.ParseConfig(s.DSN)
		u, urlErr := url.Parse(s.DSN)
		if err != nil || urlErr != nil {
			t.Fatalf("%v %v", err, urlErr)
		}
		p := NewProxy(t, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
		u.Host = p.Addr
		to.DSN = u.String()
		return p, to
	}
	c, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := NewProxy(t, c.Addr)
	c.Addr = p.Addr
	to.DSN = c.FormatDSN()
	return p, to
}

// Open returns a handle with at most so many connections, closed with the test.
func (s *Server) Open(t storetest.T, connections int) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.Driver, s.DSN)
	if err != nil {
		t.Fatalf("%v", err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Store makes tables with a prefix of their own and opens a store on them.
func (s *Server) Store(t storetest.T) *On {
	t.Helper()
	return s.Another(t, s.Tables(t))
}

// Sized is Store with so many connections for its calls.
func (s *Server) Sized(t storetest.T, connections int) *On {
	t.Helper()
	return s.open(t, s.Tables(t), connections)
}

// Tables makes tables and returns their prefix.
func (s *Server) Tables(t storetest.T) string {
	t.Helper()
	prefix := fmt.Sprintf("s%d_", s.tables.Add(1))
	if _, err := migrate.Up(context.Background(), migrate.Target{DB: s.Admin, Dialect: s.Dialect, Schema: s.Schema, Prefix: prefix}); err != nil {
		t.Fatalf("%v", err)
	}
	return prefix
}

// Another opens a store on tables that are there.
func (s *Server) Another(t storetest.T, prefix string) *On {
	t.Helper()
	return s.open(t, prefix, 8)
}

func (s *Server) open(t storetest.T, prefix string, connections int) *On {
	t.Helper()
	db := s.Open(t, connections+4)
	store, err := sqlstore.Open(context.Background(), db, &sqlstore.Options{Schema: s.Schema, TablePrefix: prefix, Connections: connections})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &On{store, s, db, prefix}
}

// Harness is the harness of stores on the server.
func (s *Server) Harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t storetest.T) driver.Store { t.Helper(); return s.Store(t) },
		Second: func(t storetest.T, first driver.Store) driver.Store {
			t.Helper()
			return s.Another(t, first.(*On).Prefix)
		},
		Edit: func(t storetest.T, store driver.Store, id driver.ID, change func(*driver.Record)) {
			t.Helper()
			snap, err := store.Get(t.Context(), id)
			if err != nil {
				t.Fatalf("edit: %v", err)
			}
			r := &snap.Record
			change(r)
			var set []string
			args := []any{}
			for _, c := range []struct {
				column string
				at     time.Time
			}{
				{"lease_until", r.LeaseUntil}, {"deadline_at", r.DeadlineAt}, {"repeatable_until", r.RepeatableUntil}, {"created_at", r.CreatedAt},
				{"claimed_at", r.ClaimedAt}, {"updated_at", r.UpdatedAt}, {"completed_at", r.CompletedAt}, {"expires_at", r.ExpiresAt},
			} {
				value := any(nil)
				if !c.at.IsZero() {
					value = c.at.UTC().Format("2006-01-02 15:04:05.000000")
				}
				args = append(args, value)
				if s.Dialect == dialect.PostgreSQL {
					set = append(set, fmt.Sprintf("%s = ($%d::text || 'Z')::timestamptz", c.column, len(args)))
				} else {
					set = append(set, c.column+" = ?")
				}
			}
			where := "?"
			if s.Dialect == dialect.PostgreSQL {
				where = fmt.Sprintf("$%d", len(args)+1)
			}
			query := fmt.Sprintf("UPDATE %s.%srecords SET %s WHERE id = %s", s.Schema, store.(*On).Prefix, strings.Join(set, ", "), where)
			if _, err := s.Admin.ExecContext(t.Context(), query, append(args, id[:])...); err != nil {
				t.Fatalf("edit: %v", err)
			}
		},
	}
}
