package sqlstore

import (
	"context"
	"sync"
)

// embedded runs the calls on a SQLite file: reads beside the writer and never behind it, each from the last committed
// snapshot; writes in groups that share a commit.
type embedded struct {
	readers *sessions
	writer  writer
	group   group
	closing sync.Once
}

func newEmbedded(s *Store) *embedded {
	e := &embedded{readers: newSessions(s, readers(s.db.Stats().MaxOpenConnections)), writer: writer{store: s}}
	e.group.run = e.writer.run
	return e
}

// read implements runner. A started read is short and is not interrupted.
func (e *embedded) read(ctx context.Context, f func(context.Context, conn) error) error {
	return e.readers.use(ctx, func(s *session) error { return f(context.Background(), s) })
}

// write implements runner.
func (e *embedded) write(ctx context.Context, c call) error { return e.group.do(ctx, c) }

func (e *embedded) close() {
	e.closing.Do(func() {
		e.group.close()
		e.readers.close()
		e.writer.session.close()
	})
}
