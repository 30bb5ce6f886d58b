package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
)

// TestCaseB117PlansOfUpkeep: a page and a purge read a range of the table by its key or place, never all of it, although no
// index has status, lease_until or expires_at.
func TestCaseB117PlansOfUpkeep(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", len(driver.ID{}))
	for name, c := range map[string]struct {
		open   func(t *testing.T) (db *sql.DB, tables string, claim func(driver.Claim) error)
		random string
		explain,
		analyze string
		scan, purge []any
		some        int
		want        [2]string // in the plans
		never       []string
	}{
		"sqlite": {
			open: func(t *testing.T) (*sql.DB, string, func(driver.Claim) error) {
				f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
				return f.DB, "onceward_", claimOn(f)
			},
			random: fmt.Sprintf("randomblob(%d)", len(driver.ID{})), explain: "EXPLAIN QUERY PLAN ", analyze: "ANALYZE",
			scan: []any{1, 1000}, purge: []any{`["` + id + `"]`, 1, "2026-01-01 00:00:00.000000"},
			want: [2]string{"rowid>?", "SEARCH onceward_records USING INDEX"}, never: []string{"SCAN onceward_records"},
		},
		"postgres": {
			open: func(t *testing.T) (*sql.DB, string, func(driver.Claim) error) {
				s := teststore.Postgres(t, "").Store(t)
				return s.Server.Admin, s.Server.Schema + "." + s.Prefix, claimOn(s)
			},
			random:  fmt.Sprintf("substr(decode(md5(random()::text) || md5(random()::text), 'hex'), 1, %d)", len(driver.ID{})),
			explain: "EXPLAIN ", analyze: "ANALYZE {records}",
			scan: []any{"(0,0)", "(8,0)", 100}, purge: []any{`["` + id + `"]`, 1},
			want: [2]string{"Tid Range Scan", "Index Scan"}, never: []string{"Seq Scan"},
		},
		"mysql": {
			open: func(t *testing.T) (*sql.DB, string, func(driver.Claim) error) {
				s := teststore.MySQL(t, "").Store(t)
				return s.Server.Admin, s.Server.Schema + "." + s.Prefix, claimOn(s)
			},
			random:  fmt.Sprintf("UNHEX(SUBSTR(CONCAT(MD5(RAND()), MD5(RAND())), 1, %d))", 2*len(driver.ID{})),
			explain: "EXPLAIN ", analyze: "ANALYZE TABLE {records}",
			scan: []any{[]byte{1}, 100}, some: 100,
			want: [2]string{"range", "range"}, never: []string{" ALL ", " index "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, tables, claim := c.open(t)
			if err := claim(claimOf("k")); err != nil {
				t.Fatal(err)
			}
			exec := func(query string, args ...any) {
				if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(query, "{records}", tables+"records"), args...); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			others := columnsOf(t, db, tables)
			for range 12 {
				exec(fmt.Sprintf("INSERT INTO {records} (id, %s) SELECT %s, %s FROM {records}", others, c.random, others))
			}
			exec(c.analyze)
			purge := c.purge
			for range c.some {
				purge = append(purge, []byte(id[:len(driver.ID{})]))
			}
			if c.some > 0 {
				purge = append(purge, 1)
			}
			for n, args := range [][]any{c.scan, purge} {
				file := [2]string{"scan", "purge"}[n]
				plan := planOf(t, db, c.explain+statement(t, name, file, tables, c.some), args)
				if !strings.Contains(plan, c.want[n]) {
					t.Errorf("%s does not say %q:\n%s", file, c.want[n], plan)
				}
				for _, word := range c.never {
					if strings.Contains(plan, word) {
						t.Errorf("%s walks the table:\n%s", file, plan)
					}
				}
			}
		})
	}
}

func claimOn(s driver.Store) func(driver.Claim) error {
	return func(c driver.Claim) error { _, err := s.Claim(context.Background(), c); return err }
}

// columnsOf lists the columns of the records, without what makes a row that one.
func columnsOf(t *testing.T, db *sql.DB, tables string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+tables+"records WHERE 1 = 0") //nolint:gosec // the test's own table
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all, err := rows.Columns()
	if err != nil || rows.Err() != nil {
		t.Fatal(err, rows.Err())
	}
	var others []string
	for _, c := range all {
		if c != "id" && c != "nr" { // nr is the rowid of SQLite
			others = append(others, c)
		}
	}
	return strings.Join(others, ", ")
}

// statement reads a statement as the store runs it.
func statement(t *testing.T, dialect, name, tables string, some int) string {
	t.Helper()
	var b strings.Builder
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("sql", dialect, name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--") {
				b.WriteString(line)
			}
		}
		return strings.TrimSpace(b.String())
	}
	fields := read("fields")
	return strings.NewReplacer("{prefix}", tables, "{fields}", fields, "{some}", "?"+strings.Repeat(", ?", max(some-1, 0))).Replace(read(name))
}

// planOf returns all that the server says of a plan, a line a row.
func planOf(t *testing.T, db *sql.DB, query string, args []any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			b.WriteString(" " + c.String + " ")
		}
		b.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
