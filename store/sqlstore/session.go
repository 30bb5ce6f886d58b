package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// session is one connection, taken out of the pool for good, with its statements prepared. It speaks to the driver
// through database/sql/driver: for the short statements here database/sql itself would cost about as much again, and a
// goroutine for each query whose context can end. One goroutine at a time; the zero value is not open.
type session struct {
	conn  *sql.Conn
	stmts map[string]statement
	args  []sqldriver.NamedValue // reused
}

// statement is what every driver's prepared statement can do since Go 1.8.
type statement interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

// open takes a connection, lets setup have it, and prepares the named statements. An open session is left as it is.
func (s *session) open(ctx context.Context, store *Store, setup func(context.Context, *sql.Conn) error, names ...string) error {
	if s.conn != nil {
		return nil
	}
	conn, err := store.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("onceward: the store can't connect: %w", err)
	}
	s.conn, s.stmts = conn, make(map[string]statement, len(names))
	if setup != nil {
		err = setup(ctx, conn)
	}
	if err == nil {
		err = conn.Raw(func(dc any) error { return s.prepare(ctx, dc, store.sql, names) })
	}
	if err != nil {
		s.close()
	}
	return err
}

// close closes the connection instead of giving it back to the pool.
func (s *session) close() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Raw(func(any) error {
		for _, stmt := range s.stmts {
			_ = stmt.Close()
		}
		return sqldriver.ErrBadConn
	})
	_ = s.conn.Close()
	s.conn, s.stmts = nil, nil
}

// use runs f while the session is locked against a closing of the database. exec and query work only inside.
func (s *session) use(f func() error) error {
	return s.conn.Raw(func(any) error { return f() })
}

// exec runs a statement and returns how many rows it changed.
func (s *session) exec(name string, args ...sqldriver.Value) (affected int64, err error) {
	res, err := s.stmts[name].ExecContext(context.Background(), s.bind(args))
	if err == nil {
		affected, err = res.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("onceward: %s: %w", name, err)
	}
	return affected, nil
}

// query calls each for every row. What a row holds is the driver's memory, and is gone when each returns.
func (s *session) query(name string, columns int, each func(row []sqldriver.Value) error, args ...sqldriver.Value) error {
	rows, err := s.stmts[name].QueryContext(context.Background(), s.bind(args))
	if err != nil {
		return fmt.Errorf("onceward: %s: %w", name, err)
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	if len(row) != columns {
		err = fmt.Errorf("%d columns instead of %d", len(row), columns)
	}
	for err == nil {
		if err = rows.Next(row); err == nil {
			err = each(row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		return fmt.Errorf("onceward: %s: %w", name, err)
	}
	return nil
}

func (s *session) bind(args []sqldriver.Value) []sqldriver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, sqldriver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

func (s *session) prepare(ctx context.Context, dc any, texts map[string]string, names []string) error {
	preparer, ok := dc.(sqldriver.ConnPrepareContext)
	if !ok {
		return fmt.Errorf("onceward: the SQL driver %T can't prepare statements under a context: use a newer driver", dc)
	}
	for _, name := range names {
		stmt, err := preparer.PrepareContext(ctx, texts[name])
		if err != nil {
			return fmt.Errorf("onceward: prepare %s: %w", name, err)
		}
		if s.stmts[name], ok = stmt.(statement); !ok {
			return errors.Join(fmt.Errorf("onceward: the SQL driver's %T takes no context: use a newer driver", stmt), stmt.Close())
		}
	}
	return nil
}
