// Package doctor looks at the database behind a store and says what each of its settings can cost.
package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/internal/migrate"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	Fine  Level = "ok"
	Worth Level = "note"    // worth knowing
	Risky Level = "warning" // can cost something some day
	Wrong Level = "error"   // the store does not work, or does not keep what it promises
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level" yaml:"level"`
	What  string `json:"what" yaml:"what"`   // what was looked at
	Found string `json:"found" yaml:"found"` // what is there
	Cost  string `json:"cost,omitempty" yaml:"cost,omitempty"`
	Cure  string `json:"cure,omitempty" yaml:"cure,omitempty"`
}

// Report is all findings, in the order in which they were looked at.
type Report struct {
	Store    string    `json:"store" yaml:"store"`
	Findings []Finding `json:"findings" yaml:"findings"`
}

// Healthy reports whether nothing is risky or wrong.
func (r *Report) Healthy() bool {
	for _, f := range r.Findings {
		if f.Level == Risky || f.Level == Wrong {
			return false
		}
	}
	return true
}

// check is one question to the database.
type check struct {
	what  string
	query string
	judge func(found string) Finding // without What and Found
}

// Examine looks at the store of t. It changes nothing.
func Examine(ctx context.Context, name string, t migrate.Target) Report {
	rep := Report{Store: name}
	if err := t.DB.PingContext(ctx); err != nil {
		rep.add(Finding{Level: Wrong, What: "connection", Found: err.Error(), Cost: "nothing works", Cure: "check host, port, user, password and the network"})
		return rep
	}
	rep.tables(ctx, t)
	for _, c := range checks(t.Dialect) {
		found, err := ask(ctx, t.DB, c.query)
		if err != nil {
			rep.add(Finding{Level: Worth, What: c.what, Found: "can't be asked: " + err.Error()})
			continue
		}
		f := c.judge(found)
		f.What, f.Found = c.what, found
		rep.add(f)
	}
	return rep
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// tables looks at the version of the tables.
func (r *Report) tables(ctx context.Context, t migrate.Target) {
	steps, err := migrate.Status(ctx, t)
	f := Finding{Level: Fine, What: "tables"}
	if err != nil {
		r.add(Finding{Level: Wrong, What: f.What, Found: err.Error(), Cost: "the store does not open", Cure: "onceward migrate status --store URL"})
		return
	}
	applied := 0
	for _, s := range steps {
		if s.Applied {
			applied++
		}
	}
	f.Found = fmt.Sprintf("%d of %d migrations applied", applied, len(steps))
	if applied < len(steps) {
		f.Level, f.Cost, f.Cure = Wrong, "the store does not open", "onceward migrate up --store URL"
	}
	r.add(f)
}

// ask returns the last column of the first row: SHOW puts a name before the value.
func ask(ctx context.Context, db *sql.DB, query string) (found string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return "none", errors.Join(err, rows.Err())
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	err = rows.Scan(into...)
	return values[len(values)-1].String, err
}

// when returns a judge that finds fault with any of these values.
func when(bad map[string]bool, level Level, cost, cure string) func(string) Finding {
	return func(found string) Finding {
		if bad[found] {
			return Finding{Level: level, Cost: cost, Cure: cure}
		}
		return Finding{Level: Fine}
	}
}

// unless returns a judge that finds fault with any other value.
func unless(good map[string]bool, level Level, cost, cure string) func(string) Finding {
	return func(found string) Finding {
		if good[found] {
			return Finding{Level: Fine}
		}
		return Finding{Level: level, Cost: cost, Cure: cure}
	}
}

func these(values ...string) map[string]bool {
	m := map[string]bool{}
	for _, v := range values {
		m[v] = true
	}
	return m
}

const (
	lostClaims  = "what was acknowledged can be lost in a crash: a claim that is gone lets the work run twice, a result that is gone too"
	lostOnCrash = "a crash of the operating system or a power cut can lose or damage what was acknowledged"
)

func checks(d dialect.Dialect) []check {
	switch d {
	case dialect.PostgreSQL:
		return postgres()
	case dialect.MySQL:
		return mysql()
	}
	return sqlite()
}
