package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/sqlstore"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	postgres, mysql := teststore.Postgres(t, ""), teststore.MySQL(t, "")
	mysqlURL := mysqlURL(t, mysql.DSN, mysql.Schema)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("POSTGRES", postgres.DSN)
			env.Setenv("SCHEMA", postgres.Schema)
			env.Setenv("MYSQL", mysqlURL)
			env.Setenv("ORDER2", driver.Identify(driver.Scope{}, "pay", "order-2").String())
			return errors.Join(
				fillStore(filepath.Join(env.WorkDir, "o.db"), func(context.Context, *onceward.Guard) error { return nil }),
				fillStore(filepath.Join(env.WorkDir, "seeded.db"), seed),
				fillStore(filepath.Join(env.WorkDir, "steps.db"), seedSteps),
			)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus},
	})
}

// mysqlURL is the store URL of a DSN with another database.
func mysqlURL(t *testing.T, dsn, database string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "mysql", User: url.UserPassword(cfg.User, cfg.Passwd), Host: cfg.Addr, Path: "/" + database}
	return u.String()
}

// exitStatus runs a program, which has to end with that status.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

func fillStore(path string, fill func(context.Context, *onceward.Guard) error) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	s, err := sqlstore.Open(ctx, db, nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	guard, err := onceward.New(s, &onceward.Options{SingleTenant: true})
	if err == nil {
		err = fill(ctx, guard)
		_, closeErr := guard.Close(ctx)
		err = errors.Join(err, closeErr)
	}
	return errors.Join(err, s.Close(), db.Close())
}

// seed leaves records of programs, and one as the gateway leaves it.
func seed(ctx context.Context, guard *onceward.Guard) error {
	ops := map[string]*onceward.Op{}
	for _, o := range []onceward.Operation{
		{Name: "pay"}, {Name: "refund"}, {Name: "http"}, {Name: "brief", Retention: time.Millisecond}, {Name: "bytes", Codec: onceward.Raw{}},
	} {
		op, err := guard.Define(o)
		if err != nil {
			return err
		}
		ops[o.Name] = op
	}
	type receipt struct {
		ID string `json:"id"`
	}
	var problems []error
	for _, r := range []struct{ op, key, unknown string }{
		{"pay", "order-1", ""}, {"pay", "order-2", "the bank hung up"}, {"refund", "order-1", ""}, {"http", "web-1", "HTTP status 502"},
		{"brief", "gone", ""}, {"bytes", "b-1", ""}, {"bytes", "b-2", "cut off"},
	} {
		k, err := key.Parse(r.key)
		if err != nil {
			return err
		}
		call, failure := onceward.Call{Key: k, Request: r.key}, error(nil)
		if r.unknown != "" {
			failure = onceward.Unknown(errors.New(r.unknown))
		}
		if r.op == "bytes" {
			_, err = onceward.Do(ctx, ops[r.op], call, func(context.Context) ([]byte, error) { return []byte("b"), failure })
		} else {
			_, err = onceward.Do(ctx, ops[r.op], call, func(context.Context) (receipt, error) { return receipt{"r-1"}, failure })
		}
		if (err == nil) != (r.unknown == "") {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// seedSteps leaves a transfer that the bank did, and of whose message nobody knows whether it was sent; and one that expired.
func seedSteps(ctx context.Context, guard *onceward.Guard) error {
	op, err := guard.Define(onceward.Operation{Name: "transfer"})
	if err != nil {
		return err
	}
	k, err := key.Parse("t-1")
	if err != nil {
		return err
	}
	_, err = onceward.Do(ctx, op, onceward.Call{Key: k}, func(ctx context.Context) (string, error) {
		if _, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) { return "ref-7", nil }); err != nil {
			return "", err
		}
		return onceward.Step(ctx, "sms", func(context.Context) (string, error) { return "", onceward.Unknown(errors.New("no reply")) })
	})
	if !errors.Is(err, onceward.ErrUnknown) {
		return fmt.Errorf("the transfer is to be unknown, but: %w", err)
	}
	brief, err := guard.Define(onceward.Operation{Name: "brief", Retention: time.Millisecond})
	if err != nil {
		return err
	}
	_, err = onceward.Do(ctx, brief, onceward.Call{Key: k}, func(context.Context) (int, error) { return 1, nil })
	return err
}
