package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/internal/migrate"
	"github.com/onceward/onceward/internal/storeurl"
	"github.com/onceward/onceward/janitor"
)

// store is an open store and how to close it.
type store struct {
	janitor.Store
	close func() error
}

// storeFlags name a store and its tables.
type storeFlags struct {
	url    string
	schema string
	prefix string
}

func (f *storeFlags) add(flags *pflag.FlagSet, url, more string) {
	flags.StringVar(&f.url, "store", url, storeurl.Help+more)
	flags.StringVar(&f.schema, "schema", "", "where the tables are: a schema of PostgreSQL, a database of MySQL (default where the URL leads)")
	flags.StringVar(&f.prefix, "table-prefix", "onceward_", "how the names of the tables begin")
}

// parse checks the URL without touching what it names.
func (f *storeFlags) parse() (*storeurl.URL, error) {
	u, err := storeurl.Parse(f.url)
	return u, told(err)
}

// open opens the store. create allows a missing file to be made.
func (f *storeFlags) open(ctx context.Context, create bool) (*store, error) {
	u, err := f.parse()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s, err := u.Open(ctx, storeurl.Options{Create: create, Schema: f.schema, TablePrefix: f.prefix})
	if err != nil {
		return nil, told(err)
	}
	return &store{s.Store, s.Close}, nil
}

// prepare makes missing tables on a server, where nobody else may, and returns the store's name, without a password.
func (f *storeFlags) prepare(ctx context.Context, name string) (string, error) {
	u, err := f.parse()
	if err != nil {
		return "", err
	}
	if name == "" {
		name = u.String()
	}
	if u.On == 0 || u.On == dialect.SQLite {
		return name, nil
	}
	_, t, closeDB, err := f.target(true)
	if err != nil {
		return "", err
	}
	_, err = migrate.Up(ctx, t)
	return name, errors.Join(err, closeDB())
}

// target is the store's database as migrations and the doctor see it, and how to close it.
func (f *storeFlags) target(create bool) (*storeurl.URL, migrate.Target, func() error, error) {
	u, err := f.parse()
	if err != nil {
		return nil, migrate.Target{}, nil, err
	}
	if u.On == 0 {
		return nil, migrate.Target{}, nil, usage("store %s has no tables", u)
	}
	db, err := u.Database(create)
	if err != nil {
		return nil, migrate.Target{}, nil, told(err)
	}
	return u, migrate.Target{DB: db, Dialect: u.On, Schema: f.schema, Prefix: f.prefix}, db.Close, nil
}

// connectTimeout is how long a command waits for a database that does not answer.
const connectTimeout = 10 * time.Second

// told gives an error of a store URL its exit status.
func told(err error) error {
	switch {
	case errors.Is(err, storeurl.ErrUsage):
		return &exitError{exitUsage, err}
	case errors.Is(err, storeurl.ErrNotFound):
		return &exitError{exitNotFound, err}
	}
	return err
}

// name is the store's URL without its password.
func (f *storeFlags) name() (string, error) {
	u, err := f.parse()
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// shellQuoted is text as a shell takes it for one word.
func shellQuoted(text string) string {
	if strings.ContainsAny(text, " \t\n'\"\\$&;|<>()*?`#!{}[]~") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}
