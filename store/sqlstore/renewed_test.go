package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
)

// TestRenewedMeanwhile: a claim read a lease that was over, and the holder renewed it before the takeover was written. Fence,
// owner and status are as they were: what was decided must not be written all the same. On MySQL the read itself holds the
// row, on SQLite the transaction does.
func TestRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	server := teststore.Postgres(t, "")
	s, h := server.Store(t), server.Harness()
	first := claimOf("k")
	first.OnLapse = driver.LapseRepeat
	got := claims(t, s, first, driver.GotClaim)
	move := func(by time.Duration) {
		h.Edit(t, s, first.ID, func(r *driver.Record) { r.LeaseUntil, r.UpdatedAt = r.LeaseUntil.Add(by), r.UpdatedAt.Add(time.Second) })
	}
	move(-time.Hour)
	tx, err := server.Admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	second := claimOf("k")
	_, err = s.Bind(&meddled{tx, func() { move(2 * time.Hour) }}, 0).Claim(t.Context(), second)
	if !errors.Is(err, driver.ErrConflict) {
		t.Errorf("%v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), renewalOf(first, got)); err != nil {
		t.Errorf("the holder lost its lease: %v", err)
	}
	claims(t, s, second, driver.InFlight)
}

// meddled is a transaction in which something happens before its first UPDATE.
type meddled struct {
	tx     *sql.Tx
	before func()
}

func (m *meddled) Exec(ctx context.Context, query string, args ...any) (driver.TxResult, error) {
	if strings.HasPrefix(query, "UPDATE") {
		m.before()
	}
	res, err := m.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return driver.TxResult{}, err
	}
	n, err := res.RowsAffected()
	return driver.TxResult{Affected: n}, err
}

func (m *meddled) Query(ctx context.Context, query string, each func(row []any) error, args ...any) error {
	rows, err := m.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := errors.Join(rows.Scan(into...), each(row)); err != nil {
			return err
		}
	}
	return rows.Err()
}
