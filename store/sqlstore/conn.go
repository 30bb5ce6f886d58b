package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"

	"github.com/onceward/onceward/driver"
)

// conn runs the statements of the dialect by name: on a session of the store's own, or in a caller's transaction.
type conn interface {
	exec(ctx context.Context, name string, args ...sqldriver.Value) (driver.TxResult, error)
	// query calls each for every row. What a row holds is the driver's memory, and is gone when each returns.
	query(ctx context.Context, name string, each func(row []sqldriver.Value) error, args ...sqldriver.Value) error
}

// runner decides where and when the parts of a call run.
type runner interface {
	// read runs f on what is committed.
	read(ctx context.Context, f func(context.Context, conn) error) error
	// write runs quick, a statement that decides by itself whether it is enough, and work where it is not. Both may be nil,
	// and may be run again. work reads, decides and writes; errAgain from it says that somebody else came between.
	write(ctx context.Context, c call) error
	close()
}

// call is what write runs.
type call struct {
	beat  bool // a heartbeat: not to be kept waiting by claims
	quick func(context.Context, conn) (done bool, err error)
	work  func(context.Context, conn) error
}

// errAgain: what was read has changed before it was written.
var errAgain = errors.New("onceward: the record changed meanwhile, again and again: the store is overloaded, or something else writes to its tables")

// try runs what needs no work.
func (c *call) try(ctx context.Context, on conn) (done bool, err error) {
	if c.quick == nil {
		return false, nil
	}
	return c.quick(ctx, on)
}

// run runs the call once.
func (c *call) run(ctx context.Context, on conn) error {
	if done, err := c.try(ctx, on); done || err != nil {
		return err
	}
	if c.work == nil {
		return nil
	}
	return c.work(ctx, on)
}
