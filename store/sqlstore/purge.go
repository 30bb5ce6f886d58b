package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

// some is how many records MySQL drops in one statement.
const some = 100

// Purge implements driver.Purger. The floor is raised before anything is dropped: a death between the statements leaves it
// higher than it needs to be, which harms nothing. What drops says all that makes a record expired once more.
func (s *Store) Purge(ctx context.Context, p driver.Purge) (dropped int, err error) {
	if err := p.Check(); err != nil || len(p.IDs) == 0 {
		return 0, err
	}
	before := 0 // by tries that failed on their way
	err = s.runner.write(ctx, call{quick: func(ctx context.Context, on conn) (done bool, err error) {
		if _, err := on.exec(ctx, "floor", strconv.FormatInt(p.Floor, 10), p.Floor); err != nil {
			return false, err
		}
		s.floor.raise(p.Floor)
		before += dropped
		dropped, err = s.purge(ctx, on, &p)
		return true, err
	}})
	if s.dialect == dialect.SQLite {
		before = 0 // such tries were rolled back
		if err != nil {
			dropped = 0
		}
	}
	return before + dropped, err
}

func (s *Store) purge(ctx context.Context, on conn, p *driver.Purge) (n int, err error) {
	switch s.dialect {
	case dialect.MySQL:
		for ids := range slices.Chunk(p.IDs, some) {
			args := make([]sqldriver.Value, 0, some+1)
			for i := range some {
				args = append(args, ids[min(i, len(ids)-1)][:])
			}
			res, err := on.exec(ctx, "purge", append(args, p.Floor)...)
			n += int(res.Affected)
			if err != nil {
				return n, err
			}
		}
		return n, nil
	case dialect.PostgreSQL:
		res, err := on.exec(ctx, "purge", list(p.IDs), p.Floor)
		return int(res.Affected), err
	}
	res, err := on.exec(ctx, "purge", list(p.IDs), p.Floor, bindTime(hostNow()))
	return int(res.Affected), err
}

// list writes IDs as a list of JSON.
func list(ids []driver.ID) string {
	texts := make([]string, len(ids))
	for i := range ids {
		texts[i] = hex.EncodeToString(ids[i][:])
	}
	text, _ := json.Marshal(texts) // strings always have a JSON form
	return string(text)
}
