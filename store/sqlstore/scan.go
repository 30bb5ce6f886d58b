package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
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
			return driver.Page{}, errors.New("onceward: Scan.After is not a Next of an earlier page")
		}
	}
	limit := max(q.Limit, 1)
	var page driver.Page
	n := 0
	err := s.readers.use(ctx, func(session *session) error {
		return session.query("scan", scanColumns, func(row []sqldriver.Value) error {
			n++
			var ok bool
			if after, ok = row[scanColumns-1].(int64); !ok {
				return fmt.Errorf("a rowid is a %T", row[scanColumns-1])
			}
			var id driver.ID
			if !fill(id[:], row[scanColumns-2]) {
				return fmt.Errorf("damaged record at rowid %d: its id has the wrong length", after)
			}
			rec := scanIdentity(id, row)
			now, err := scanFields(rec, row)
			rec.Result.Data = nil
			if err == nil && state.Matches(q.Which, rec, now) {
				page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: *rec, Now: now})
			}
			return err
		}, after, int64(limit))
	})
	if err != nil {
		return driver.Page{}, err
	}
	if n == limit {
		page.Next = strconv.FormatInt(after, 10)
	}
	return page, nil
}
