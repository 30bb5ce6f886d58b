package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Progress implements driver.StepStore. Its one statement decides as state.Progress does.
func (s *Store) Progress(ctx context.Context, p driver.Progress) error {
	if err := p.Check(); err != nil {
		return err
	}
	taken := false
	err := s.runner.write(ctx, call{quick: func(ctx context.Context, on conn) (done bool, err error) {
		taken, err = s.progress(ctx, on, &p)
		return true, err
	}})
	if err == nil && !taken {
		err = driver.ErrLeaseLost
	}
	return err
}

func (s *Store) progress(ctx context.Context, on conn, p *driver.Progress) (taken bool, err error) {
	args := []sqldriver.Value{
		bindSteps(p.Steps, p.Version), p.OnLapse.String(), orNone(p.RepeatableFor, p.RepeatableFor > 0), p.Lease.Microseconds(),
		p.ID[:], p.Owner[:], p.Fence, bindBool(p.Intent), p.Version,
	}
	if s.dialect == dialect.SQLite {
		now := hostNow()
		var until time.Time
		if p.RepeatableFor > 0 {
			until = now.Add(p.RepeatableFor)
		}
		args[2], args[3] = bindTime(until), bindTime(now.Add(p.Lease))
		args = append(args, bindTime(now))
	}
	res, err := on.exec(ctx, "progress", args...)
	if err != nil || res.Affected > 0 || s.dialect != dialect.MySQL {
		return res.Affected > 0, err
	}
	// MySQL counts rows that changed: the same progress in the same microsecond changes nothing.
	cur, now, err := s.get(ctx, on, p.ID)
	if err != nil {
		return false, err
	}
	_, taken = state.Progress(cur, p, now)
	return taken, nil
}

// step is how a step is written: as JSON, for people and programs at a SQL prompt.
type step struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Attempt   int    `json:"attempt"`
	BegunAt   string `json:"begun_at,omitempty"`
	Codec     string `json:"codec,omitempty"`
	Meta      []byte `json:"meta,omitempty"`
	Result    []byte `json:"result"`
	Tombstone bool   `json:"tombstone,omitempty"`
	Error     string `json:"error,omitempty"`
}

// stepsColumn is what the column holds.
type stepsColumn struct {
	Version int64  `json:"version"`
	Steps   []step `json:"steps"`
}

func bindSteps(steps []driver.Step, version int64) sqldriver.Value {
	if steps == nil && version == 0 {
		return nil
	}
	var rows []step
	if steps != nil {
		rows = make([]step, 0, len(steps))
	}
	for i := range steps {
		s := &steps[i]
		row := step{Name: s.Name, State: s.State.String(), Attempt: s.Attempt, Error: s.Error,
			Codec: s.Result.Codec, Meta: s.Result.Meta, Result: s.Result.Data, Tombstone: s.Result.Tombstone}
		if !s.BegunAt.IsZero() {
			row.BegunAt = s.BegunAt.UTC().Format(timeLayout)
		}
		rows = append(rows, row)
	}
	text, _ := json.Marshal(stepsColumn{version, rows}) // strings, numbers and bytes always have a JSON form
	return string(text)
}

func scanSteps(v sqldriver.Value) (steps []driver.Step, version int64, err error) {
	if v == nil {
		return nil, 0, nil
	}
	var column stepsColumn
	if err := json.Unmarshal(blob(v), &column); err != nil {
		return nil, 0, err
	}
	rows := column.Steps
	if rows == nil {
		return nil, column.Version, nil
	}
	steps = make([]driver.Step, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		s := driver.Step{Name: row.Name, Attempt: row.Attempt, Error: row.Error,
			Result: driver.Result{Codec: row.Codec, Meta: row.Meta, Data: row.Result, Tombstone: row.Tombstone}}
		var ok bool
		if s.State, ok = driver.ParseStepState(row.State); !ok {
			return nil, 0, fmt.Errorf("%q is no state of a step", row.State)
		}
		if row.BegunAt != "" {
			if s.BegunAt, ok = parseTime(row.BegunAt); !ok {
				return nil, 0, fmt.Errorf("%q is no time", row.BegunAt)
			}
		}
		steps = append(steps, s)
	}
	return steps, column.Version, nil
}
