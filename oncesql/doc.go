// Package oncesql makes record and work one database transaction: both are committed, or neither. Then the work takes effect
// exactly once, whatever dies when.
//
//	pay, err := guard.Define(onceward.Operation{Name: "pay", Tx: true})
//	receipt, err := oncesql.Do(ctx, pay, db, call, func(ctx context.Context, tx *sql.Tx) (Receipt, error) { … })
//
// db is of the database that holds the guard's store; another one is refused with onceward.ErrOtherDatabase. A transaction
// costs two statements more than the work alone: the claim and the end. On MySQL set interpolateParams=true in db's DSN, or
// each of them is prepared first.
//
// What the work does outside the database is not taken back by a rollback: keep calls to others out of it.
package oncesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

// Beginner begins transactions: *sql.DB, *sql.Conn, or what adds options to them.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Executor is a transaction as database/sql, sqlx, bun and GORM (its ConnPool) have it.
type Executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// power returns the store's power to work in transactions.
func power(op *onceward.Op) (driver.TxStore, error) {
	if op == nil || op.Guard() == nil {
		return nil, errors.New("onceward: oncesql needs an operation that a guard defined")
	}
	s, ok := op.Guard().TxStore()
	if !ok {
		return nil, fmt.Errorf("onceward: the store of operation %q has no transactions: use a store of package sqlstore in the database of the work", op.Name())
	}
	return s, nil
}

// conflict reports whether the database chose the transaction as a victim, so that it would have gone well alone.
func conflict(err error) bool {
	return errors.Is(err, driver.ErrConflict) || dialect.PostgreSQL.Conflict(err) || dialect.MySQL.Conflict(err) || dialect.SQLite.Busy(err)
}

// tx adapts a transaction to driver.Tx.
type tx struct{ Executor }

// Exec implements driver.Tx.
func (t tx) Exec(ctx context.Context, query string, args ...any) (driver.TxResult, error) {
	res, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return driver.TxResult{}, err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return driver.TxResult{}, err
	}
	id, _ := res.LastInsertId() // PostgreSQL's drivers have none
	return driver.TxResult{Affected: n, LastInsertID: id}, nil
}

// Query implements driver.Tx.
func (t tx) Query(ctx context.Context, query string, each func(row []any) error, args ...any) (err error) {
	rows, err := t.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}
