package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

var errAfter = errors.New("onceward: Scan.After is not a Next of an earlier page")

// Scan implements driver.Sweeper: by rowid on SQLite, by place in the table on PostgreSQL, by primary key on MySQL. What
// matches is chosen here, by the same functions that decide, so that a sweep and a claim can't disagree on what has lapsed.
func (s *Store) Scan(ctx context.Context, q driver.Scan) (page driver.Page, err error) {
	q.Limit = max(q.Limit, 1)
	err = s.runner.read(ctx, func(ctx context.Context, on conn) (err error) {
		page = driver.Page{} // the read may be made again
		switch s.dialect {
		case dialect.PostgreSQL:
			page, err = s.scanPlaces(ctx, on, q)
		case dialect.MySQL:
			page, err = s.scanKeys(ctx, on, q)
		default:
			page, err = s.scanRows(ctx, on, q)
		}
		return err
	})
	return page, err
}

// scan runs the statement and returns the last row's place and how many rows there were. A row that is damaged is counted:
// it must not hide the others.
func (s *Store) scan(ctx context.Context, on conn, which driver.Which, page *driver.Page, args ...sqldriver.Value) (last sqldriver.Value, n int, err error) {
	err = on.query(ctx, "scan", func(row []sqldriver.Value) error {
		n++
		page.Seen++
		rest := long(row)[longColumns+identityColumns:]
		if b, ok := rest[1].([]byte); ok {
			last = string(b)
		} else {
			last = rest[1]
		}
		var id driver.ID
		if !fill(id[:], rest[0]) {
			page.Damaged++
			return nil
		}
		rec := scanIdentity(id, row)
		now, err := scanFields(rec, row)
		rec.Result.Data = nil
		switch {
		case errors.Is(err, driver.ErrDamaged):
			page.Damaged++
		case err != nil:
			return err
		case state.Matches(which, rec, now):
			page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: *rec, Now: now})
		}
		return nil
	}, args...)
	return last, n, err
}

func (s *Store) scanRows(ctx context.Context, on conn, q driver.Scan) (page driver.Page, err error) {
	after := int64(0)
	if q.After != "" {
		if after, err = strconv.ParseInt(q.After, 10, 64); err != nil {
			return page, errAfter
		}
	}
	last, n, err := s.scan(ctx, on, q.Which, &page, after, int64(q.Limit))
	if n == q.Limit {
		page.Next = fmt.Sprint(last)
	}
	return page, err
}

func (s *Store) scanKeys(ctx context.Context, on conn, q driver.Scan) (page driver.Page, err error) {
	after, err := hex.DecodeString(q.After)
	if err != nil {
		return page, errAfter
	}
	last, n, err := s.scan(ctx, on, q.Which, &page, after, int64(q.Limit))
	if n == q.Limit {
		page.Next = fmt.Sprint(last)
	}
	return page, err
}

// blocksPerPage bounds what one statement reads of a table whose rows are few and far between.
const blocksPerPage = 128

func (s *Store) scanPlaces(ctx context.Context, on conn, q driver.Scan) (page driver.Page, err error) {
	after, block := "(0,0)", int64(0)
	if q.After != "" {
		var row int64
		if n, err := fmt.Sscanf(q.After, "(%d,%d)", &block, &row); n != 2 || err != nil {
			return page, errAfter
		}
		after = q.After
	}
	var blocks int64
	err = on.query(ctx, "blocks", func(row []sqldriver.Value) error {
		h := short{values: row}
		blocks = h.number()
		return h.err
	})
	if err != nil {
		return page, err
	}
	end := block + blocksPerPage
	last, n, err := s.scan(ctx, on, q.Which, &page, after, fmt.Sprintf("(%d,0)", end), int64(q.Limit))
	switch {
	case n == q.Limit:
		page.Next = fmt.Sprint(last)
	case end < blocks:
		page.Next = fmt.Sprintf("(%d,0)", end)
	}
	return page, err
}
