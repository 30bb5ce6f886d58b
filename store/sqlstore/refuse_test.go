package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/migrate"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/sqlstore"
	"github.com/onceward/onceward/store/storetest"
)

// opens opens a store on a server's tables, with the settings of another handle.
func opens(t *testing.T, s *teststore.Server, prefix string) error {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), s.Open(t, 4), &sqlstore.Options{Schema: s.Schema, TablePrefix: prefix})
	if err == nil {
		_ = store.Close()
	}
	return err
}

// TestOpenRefusesServers: a server or a session that can't keep the truth is refused at once, with what to do.
func TestOpenRefusesServers(t *testing.T) {
	t.Parallel()
	refuses := func(t *testing.T, server *teststore.Server, prefix, want string) {
		t.Helper()
		if err := opens(t, server, prefix); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opened, or without saying %q: %v", want, err)
		}
	}
	// as is the same schema by another handle
	as := func(s *teststore.Server, dsn string) *teststore.Server {
		return &teststore.Server{Dialect: s.Dialect, Driver: s.Driver, Schema: s.Schema, DSN: dsn}
	}
	t.Run("a session that is read-only", func(t *testing.T) {
		t.Parallel()
		s := teststore.Postgres(t, "").Store(t)
		refuses(t, as(s.Server, s.Server.DSN+"&default_transaction_read_only=on"), s.Prefix, "read-only")
	})
	t.Run("a streaming replica", func(t *testing.T) {
		t.Parallel()
		own := teststore.OwnPostgres(t)
		s := teststore.PostgresAt(t, own.DSN, "").Store(t)
		replica := own.Replica(t)
		db := replica.Open(t)
		eventually(t, "the replica has the tables", func() bool {
			var there bool
			err := db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT to_regclass('%s.%smeta') IS NOT NULL", s.Server.Schema, s.Prefix)).Scan(&there)
			return err == nil && there
		})
		refuses(t, as(s.Server, replica.DSN), s.Prefix, "primary")
		if err := opens(t, s.Server, s.Prefix); err != nil {
			t.Errorf("the primary: %v", err)
		}
	})
	t.Run("a MariaDB server that is read-only", func(t *testing.T) {
		t.Parallel()
		s := teststore.MySQLAt(t, teststore.OwnMySQL(t).DSN, "").Store(t)
		for _, on := range []string{"1", "0"} {
			if _, err := s.Server.Admin.ExecContext(t.Context(), "SET GLOBAL read_only = "+on); err != nil {
				t.Fatal(err)
			}
			if on == "1" {
				refuses(t, s.Server, s.Prefix, "primary")
			} else if err := opens(t, s.Server, s.Prefix); err != nil {
				t.Errorf("that is no longer: %v", err)
			}
		}
	})
	t.Run("autocommit off in the DSN", func(t *testing.T) {
		t.Parallel()
		s := teststore.MySQL(t, "").Store(t)
		for _, off := range []string{"autocommit=0", "autocommit=false", "autocommit=OFF"} {
			refuses(t, as(s.Server, s.Server.DSN+"?"+off), s.Prefix, "autocommit")
		}
	})
	t.Run("autocommit off by the server", func(t *testing.T) {
		t.Parallel()
		own := teststore.OwnMySQL(t)
		s := teststore.MySQLAt(t, own.DSN, "").Store(t)
		// init_connect is not run for who may do everything
		for _, setup := range []string{
			"CREATE USER plain@'127.0.0.1'", "GRANT ALL ON " + s.Server.Schema + ".* TO plain@'127.0.0.1'",
			"SET GLOBAL init_connect = 'SET autocommit = 0'",
		} {
			if _, err := s.Server.Admin.ExecContext(t.Context(), setup); err != nil {
				t.Fatal(err)
			}
		}
		refuses(t, as(s.Server, strings.Replace(own.DSN, "root@", "plain@", 1)), s.Prefix, "autocommit")
	})
}

// TestOpenRefusesTables: tables of another version are refused with the command that mends it, and left alone.
func TestOpenRefusesTables(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		if err := opens(t, server, "none_"); !errors.Is(err, sqlstore.ErrSchemaMissing) || !strings.Contains(err.Error(), "onceward migrate up") {
			t.Errorf("no tables: %v", err)
		}
		gone := &teststore.Server{Dialect: server.Dialect, Driver: server.Driver, DSN: server.DSN, Schema: "nowhere"}
		if err := opens(t, gone, "none_"); !errors.Is(err, sqlstore.ErrSchemaMissing) {
			t.Errorf("no schema: %v", err)
		}
		s := server.Store(t)
		for i, want := range []error{sqlstore.ErrSchemaOld, sqlstore.ErrSchemaNew, nil} {
			version := sqlstore.SchemaVersion + []int{-1, 1, 0}[i]
			set := fmt.Sprintf("UPDATE %s.%smeta SET value = '%d' WHERE name = 'schema'", server.Schema, s.Prefix, version)
			if _, err := server.Admin.ExecContext(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if err := opens(t, server, s.Prefix); !errors.Is(err, want) || err != nil && want == nil {
				t.Errorf("version %d: %v, want %v", version, err, want)
			}
		}
		steps, err := migrate.Up(t.Context(), migrate.Target{DB: server.Admin, Dialect: server.Dialect, Schema: server.Schema, Prefix: s.Prefix})
		if err != nil || len(steps) != 0 {
			t.Errorf("nothing to migrate: %v, %v", steps, err)
		}
	})
}

// TestMigrationOfManyAtOnce: programs that are started together make one set of tables.
func TestMigrationOfManyAtOnce(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, server *teststore.Server) {
		done := make(chan error, 4)
		for range cap(done) {
			go func() {
				_, err := migrate.Up(t.Context(), migrate.Target{DB: server.Admin, Dialect: server.Dialect, Schema: server.Schema, Prefix: "p_"})
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		h := server.Harness()
		h.Open = func(t storetest.T) driver.Store { return server.Another(t, "p_") }
		storetest.Cases()[0].Run(t, &h)
	})
}
