package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

// session is one connection, taken out of the pool for good, so that nobody else's settings, transactions or load reach it.
// It speaks to the driver through database/sql/driver: for the short statements here database/sql itself would cost about
// as much again, and a goroutine for each query whose context can end. One goroutine at a time; the zero value is not open.
type session struct {
	store *Store
	conn  *sql.Conn
	raw   any                  // inside use
	stmts map[string]statement // prepared at their first use; PostgreSQL's drivers do that themselves, or not, behind a pooler
	args  []sqldriver.NamedValue
}

// statement is what every driver's prepared statement can do since Go 1.8.
type statement interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

// open takes a connection and lets setup have it. An open session is left as it is.
func (s *session) open(ctx context.Context, store *Store, setup func(context.Context, *sql.Conn) error) error {
	if s.conn != nil {
		return nil
	}
	conn, err := store.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("onceward: the store can't connect: %w", err)
	}
	s.store, s.conn, s.stmts = store, conn, map[string]statement{}
	if setup != nil {
		if err = setup(ctx, conn); err != nil {
			s.close()
		}
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
	s.conn, s.stmts, s.raw = nil, nil, nil
}

// use runs f while the session is locked against a closing of the database. exec and query work only inside.
func (s *session) use(f func() error) error {
	return s.conn.Raw(func(raw any) error {
		s.raw = raw
		return f()
	})
}

// exec implements conn.
func (s *session) exec(ctx context.Context, name string, args ...sqldriver.Value) (done driver.TxResult, err error) {
	var res sqldriver.Result
	if s.prepares() {
		var stmt statement
		if stmt, err = s.statement(ctx, name); err == nil {
			res, err = stmt.ExecContext(ctx, s.bind(args))
		}
	} else if on, ok := s.raw.(sqldriver.ExecerContext); ok {
		res, err = on.ExecContext(ctx, s.store.sql[name], s.bind(args))
	} else {
		err = errDriver(s.raw)
	}
	if err == nil {
		done.Affected, err = res.RowsAffected()
	}
	if err != nil {
		return driver.TxResult{}, fmt.Errorf("onceward: %s: %w", name, err)
	}
	if s.store.dialect == dialect.MySQL {
		done.LastInsertID, _ = res.LastInsertId()
	}
	return done, nil
}

// query implements conn.
func (s *session) query(ctx context.Context, name string, each func(row []sqldriver.Value) error, args ...sqldriver.Value) error {
	var rows sqldriver.Rows
	var err error
	if s.prepares() {
		var stmt statement
		if stmt, err = s.statement(ctx, name); err == nil {
			rows, err = stmt.QueryContext(ctx, s.bind(args))
		}
	} else if on, ok := s.raw.(sqldriver.QueryerContext); ok {
		rows, err = on.QueryContext(ctx, s.store.sql[name], s.bind(args))
	} else {
		err = errDriver(s.raw)
	}
	if err != nil {
		return fmt.Errorf("onceward: %s: %w", name, err)
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
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

func (s *session) prepares() bool { return s.store.dialect != dialect.PostgreSQL }

// statement returns a prepared statement.
func (s *session) statement(ctx context.Context, name string) (statement, error) {
	if stmt, ok := s.stmts[name]; ok {
		return stmt, nil
	}
	preparer, ok := s.raw.(sqldriver.ConnPrepareContext)
	if !ok {
		return nil, errDriver(s.raw)
	}
	prepared, err := preparer.PrepareContext(ctx, s.store.sql[name])
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	stmt, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(errDriver(prepared), prepared.Close())
	}
	s.stmts[name] = stmt
	return stmt, nil
}

func errDriver(of any) error {
	return fmt.Errorf("the SQL driver's %T runs no statement under a context: use a newer driver", of)
}
