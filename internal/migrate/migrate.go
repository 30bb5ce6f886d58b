// Package migrate brings a store's tables to the version that this program needs. It is the only place that changes tables
// of a server: the library refuses those that do not fit.
package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/store/sqlstore"
)

// Target is whose tables are meant.
type Target struct {
	DB      *sql.DB
	Dialect dialect.Dialect
	Schema  string // empty: where DB is
	Prefix  string // empty: "onceward_"
}

func (t *Target) prefix() string {
	if t.Prefix == "" {
		return "onceward_"
	}
	return t.Prefix
}

// Step is one migration.
type Step struct {
	Version int64
	Name    string
	Applied bool
}

// maxTries bounds how often a migration is tried beside others that migrate too.
const maxTries = 8

// Up applies what is missing, in order, and returns it. A migration that another process applied meanwhile is fine.
func Up(ctx context.Context, t Target) ([]Step, error) {
	p, err := t.provider()
	if err != nil {
		return nil, err
	}
	if err := t.known(ctx, p); err != nil {
		return nil, err
	}
	done, err := p.Up(ctx)
	for try := 1; err != nil; try++ { // where many migrate at once, all but one fail, and what that one has left is done again
		if pending, again := p.HasPending(ctx); again == nil && !pending {
			return nil, nil
		}
		if try == maxTries {
			return nil, fmt.Errorf("onceward: migrate: %w", err)
		}
		select {
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("onceward: migrate: %w", err)
		}
		done, err = p.Up(ctx)
	}
	steps := make([]Step, 0, len(done))
	for _, d := range done {
		steps = append(steps, Step{d.Source.Version, d.Source.Path, true})
	}
	return steps, nil
}

// Status returns all migrations.
func Status(ctx context.Context, t Target) ([]Step, error) {
	p, err := t.provider()
	if err != nil {
		return nil, err
	}
	if err := t.known(ctx, p); err != nil {
		return nil, err
	}
	all, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("onceward: migrate: %w", err)
	}
	steps := make([]Step, 0, len(all))
	for _, s := range all {
		steps = append(steps, Step{s.Source.Version, s.Source.Path, s.State == goose.StateApplied})
	}
	return steps, nil
}

// known refuses tables that a newer program has made.
func (t *Target) known(ctx context.Context, p *goose.Provider) error {
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("onceward: migrate: %w", err)
	}
	if version > sqlstore.SchemaVersion {
		return fmt.Errorf("%w (they have version %d, it knows %d)", sqlstore.ErrSchemaNew, version, sqlstore.SchemaVersion)
	}
	return nil
}

// Print returns the SQL of all migrations, for people who apply it by their own means.
func Print(d dialect.Dialect, schema, prefix string) (string, error) {
	t := Target{Dialect: d, Schema: schema, Prefix: prefix}
	files, err := sqlstore.Migrations(d, schema, t.prefix())
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		_, up, _ := strings.Cut(files[name], "-- +goose Up")
		up, _, _ = strings.Cut(up, "-- +goose Down")
		fmt.Fprintf(&b, "-- %s\n%s\n\n", name, strings.TrimSpace(up))
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

func (t *Target) provider() (*goose.Provider, error) {
	files, err := sqlstore.Migrations(t.Dialect, t.Schema, t.prefix())
	if err != nil {
		return nil, err
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tables, err := t.Dialect.Table(t.Schema, t.prefix())
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider("", t.DB, fsys, goose.WithStore(&versions{t.Dialect, tables + "meta"}),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("onceward: migrate: %w", err)
	}
	return p, nil
}
