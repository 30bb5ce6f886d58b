package sqlstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Scan implements driver.Sweeper, in the order of rowids. What matches is chosen here, by the same functions that
// decide, so that a sweep and a claim can't disagree on what has lapsed.
func (s *Store) Scan(ctx context.Context, q driver.Scan) (driver.Page, error) {
	after := int64(0)
	if q.After != "" {
		var err error
		if after, err = strconv.ParseInt(q.After, 10, 64); err != nil {
			return driver.Page{}, fmt.Errorf("onceward: Scan.After is not a Next of an earlier page")
		}
	}
	limit := max(q.Limit, 1)
	rows, err := s.db.QueryContext(ctx, s.sql["scan"], after, limit)
	if err != nil {
		return driver.Page{}, fmt.Errorf("onceward: scan: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var page driver.Page
	n := 0
	for rows.Next() {
		var out row
		if err := rows.Scan(append([]any{&out.now, &after}, out.targets()...)...); err != nil {
			return driver.Page{}, fmt.Errorf("onceward: scan: %w", err)
		}
		n++
		rec, err := out.record()
		if err != nil {
			return driver.Page{}, err
		}
		if rec.Result.Data != nil {
			rec.Result.Data = nil
		}
		if state.Matches(q.Which, rec, out.clock()) {
			page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: *rec, Now: out.clock()})
		}
	}
	if err := rows.Err(); err != nil {
		return driver.Page{}, fmt.Errorf("onceward: scan: %w", err)
	}
	if n == limit {
		page.Next = strconv.FormatInt(after, 10)
	}
	return page, nil
}
