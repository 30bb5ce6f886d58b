package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncesql"
)

// result is what every contestant keeps: 256 bytes.
var result = []byte(strings.Repeat("r", 256))

// connections is what both have: the store of its own, the minimum in its pool.
const connections = 16

// pair is a store and the minimum beside it, in one database.
type pair struct {
	store driver.Store
	tx    *onceward.Op
	db    *sql.DB
	min   minimum
}

// minimum is what one would write by hand.
type minimum struct {
	db                          *sql.DB
	insert, finish, lookup, row *sql.Stmt
}

func (m *minimum) first(ctx context.Context, k string) error {
	id := idOf(k)
	if _, err := m.insert.ExecContext(ctx, id[:]); err != nil {
		return err
	}
	_, err := m.finish.ExecContext(ctx, result, id[:])
	return err
}

func (m *minimum) replay(ctx context.Context, k string) error {
	id := idOf(k)
	if _, err := m.insert.ExecContext(ctx, id[:]); err != nil {
		return err
	}
	var data []byte
	return m.lookup.QueryRowContext(ctx, id[:]).Scan(&data)
}

// business is the bare business transaction.
func (m *minimum) business(ctx context.Context, k string) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.StmtContext(ctx, m.row).ExecContext(ctx, k); err != nil { //nolint:sqlclosecheck // it ends with its transaction
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func idOf(k string) driver.ID { return driver.Identify(driver.Scope{}, "pay", k) }

func claimOf(k string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{ID: idOf(k), Operation: "pay", Key: k, Fingerprint: sum, Lease: onceward.DefaultLease,
		Timeout: onceward.DefaultTimeout, Retention: onceward.DefaultRetention, MaxAttempts: 5}
	o := key.New().Reveal()
	copy(c.Owner[:], o[len(o)-16:])
	return c
}

func (p *pair) first(ctx context.Context, k string) error {
	c := claimOf(k)
	got, err := p.store.Claim(ctx, c)
	if err != nil {
		return err
	}
	if got.Verdict != driver.GotClaim {
		return fmt.Errorf("verdict %d", got.Verdict)
	}
	done, err := p.store.Finish(ctx, driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: result}}})
	if err == nil && !done.Applied {
		err = errors.New("not applied")
	}
	return err
}

func (p *pair) replay(ctx context.Context, k string) error {
	got, err := p.store.Claim(ctx, claimOf(k))
	if err == nil && (got.Verdict != driver.Done || len(got.Record.Result.Data) != len(result)) {
		err = fmt.Errorf("verdict %d", got.Verdict)
	}
	return err
}

// business is the business transaction with a record in it.
func (p *pair) business(ctx context.Context, k string) error {
	parsed, err := key.Parse(k)
	if err != nil {
		return err
	}
	_, err = oncesql.Do(ctx, p.tx, p.db, onceward.Call{Key: parsed}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		if _, err := tx.StmtContext(ctx, p.min.row).ExecContext(ctx, k); err != nil { //nolint:sqlclosecheck // it ends with its transaction
			return nil, err
		}
		return result, nil
	})
	return err
}

func databases() []dialect.Dialect { return []dialect.Dialect{dialect.PostgreSQL, dialect.MySQL} }

// open makes a pair with so many finished records in both tables.
func open(b *testing.B, d dialect.Dialect, rows int) *pair {
	b.Helper()
	s := server(b, d)
	on := s.Sized(b, connections)
	db := s.Open(b, connections+1)
	table := s.Schema + ".minimum"
	kinds := map[dialect.Dialect][3]string{
		dialect.PostgreSQL: {"bytea", "timestamptz", "clock_timestamp()"}, dialect.MySQL: {"BINARY(32)", "DATETIME(6)", "UTC_TIMESTAMP(6)"},
	}[d]
	blob := map[dialect.Dialect]string{dialect.PostgreSQL: "bytea", dialect.MySQL: "BLOB"}[d]
	exec(b, db, fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, status VARCHAR(10) NOT NULL, result %s, at %s NOT NULL)", table, kinds[0], blob, kinds[1]))
	exec(b, db, fmt.Sprintf("CREATE TABLE %s.business (k VARCHAR(64) NOT NULL PRIMARY KEY, n INT NOT NULL)", s.Schema))
	p := &pair{store: on.Store, db: db, min: minimum{db: db}}
	insert := "INSERT INTO %s (id, status, at) VALUES ($1, 'PROCESSING', " + kinds[2] + ") ON CONFLICT DO NOTHING"
	texts := []string{insert, "UPDATE %s SET status = 'SUCCESS', result = $1 WHERE id = $2", "SELECT result FROM %s WHERE id = $1 AND status = 'SUCCESS'",
		"INSERT INTO " + s.Schema + ".business (k, n) VALUES ($1, 1)"}
	if d == dialect.MySQL {
		texts[0] = "INSERT IGNORE INTO %s (id, status, at) VALUES ($1, 'PROCESSING', " + kinds[2] + ")"
	}
	for i, into := range []**sql.Stmt{&p.min.insert, &p.min.finish, &p.min.lookup, &p.min.row} {
		text := texts[i]
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, table)
		}
		if d == dialect.MySQL {
			text = strings.NewReplacer("$1", "?", "$2", "?").Replace(text)
		}
		stmt, err := db.PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatalf("%s: %v", text, err)
		}
		b.Cleanup(func() { _ = stmt.Close() })
		*into = stmt
	}
	g, err := onceward.New(on.Store, &onceward.Options{SingleTenant: true})
	if err != nil {
		b.Fatal(err)
	}
	if p.tx, err = g.Define(onceward.Operation{Name: "tx", Tx: true, Codec: onceward.Raw{}}); err != nil {
		b.Fatal(err)
	}
	fill(b, d, on, p, table, rows)
	return p
}

func server(b *testing.B, d dialect.Dialect) *teststore.Server {
	b.Helper()
	if d == dialect.PostgreSQL {
		return teststore.Postgres(b, "")
	}
	return teststore.MySQL(b, "interpolateParams=true")
}

func exec(b *testing.B, db *sql.DB, query string) {
	b.Helper()
	if _, err := db.ExecContext(b.Context(), query); err != nil {
		b.Fatalf("%s: %v", query, err)
	}
}

// fill puts finished records of the same UUIDv7-like ids into both tables.
func fill(b *testing.B, d dialect.Dialect, on *teststore.On, p *pair, table string, rows int) {
	b.Helper()
	if err := p.first(b.Context(), key.New().Reveal()); err != nil {
		b.Fatal(err)
	}
	records := on.Server.Schema + "." + on.Prefix + "records"
	columns := `namespace, tenant, caller, operation, idempotency_key, status, failure, fingerprint, attempt, died, max_attempts,
		fence, owner, lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, result_codec, result_meta,
		result, tombstone, request, error, resolution, created_at, claimed_at, updated_at, completed_at, expires_at`
	if d == dialect.PostgreSQL {
		exec(b, p.db, fmt.Sprintf("INSERT INTO %s (id, status, result, at) SELECT decode(lpad(to_hex(1700000000000 + i), 12, '0'), 'hex') || substr(sha256(i::text::bytea), 1, 26), 'SUCCESS', repeat('r', 256)::bytea, now() FROM generate_series(1, %d) i", table, rows))
		exec(b, p.db, fmt.Sprintf("INSERT INTO %s (id, %s) SELECT m.id, %s FROM %s m, (SELECT %s FROM %s LIMIT 1) r", records, columns, qualify(columns), table, columns, records))
		exec(b, p.db, "VACUUM ANALYZE "+table)
		exec(b, p.db, "VACUUM ANALYZE "+records)
		return
	}
	exec(b, p.db, fmt.Sprintf("INSERT INTO %s (id, status, result, at) SELECT UNHEX(CONCAT(LPAD(HEX(1700000000000 + seq), 12, '0'), LEFT(SHA2(seq, 256), 52))), 'SUCCESS', REPEAT('r', 256), UTC_TIMESTAMP(6) FROM mysql.seq_1_to_%d", table, rows))
	exec(b, p.db, fmt.Sprintf("INSERT INTO %s (id, %s) SELECT m.id, %s FROM %s m, (SELECT %s FROM %s LIMIT 1) r", records, columns, qualify(columns), table, columns, records))
	exec(b, p.db, "ANALYZE TABLE "+table)
	exec(b, p.db, "ANALYZE TABLE "+records)
}

func qualify(columns string) string {
	var out []string
	for c := range strings.SplitSeq(columns, ",") {
		out = append(out, "r."+strings.TrimSpace(c))
	}
	return strings.Join(out, ", ")
}

// sizes are the tables that are measured: small ones, and large ones where asked for.
func sizes() []int {
	if os.Getenv("ONCEWARD_LONG") != "" {
		return []int{10_000, 1_000_000}
	}
	return []int{10_000}
}

func BenchmarkSQL(b *testing.B) {
	for _, d := range databases() {
		for _, rows := range sizes() {
			b.Run(fmt.Sprintf("%v/rows=%d", d, rows), func(b *testing.B) {
				p := open(b, d, rows)
				hot := "hot"
				for _, f := range []func(context.Context, string) error{p.first, p.min.first} {
					if err := f(b.Context(), hot); err != nil {
						b.Fatal(err)
					}
				}
				done := func(f func(context.Context, string) error) func(context.Context, string) error {
					return func(ctx context.Context, _ string) error { return f(ctx, hot) }
				}
				mixed := func(first, replay func(context.Context, string) error) func(context.Context, string) error {
					var n atomic.Int64
					return func(ctx context.Context, k string) error {
						if n.Add(1)%5 == 0 {
							return replay(ctx, hot)
						}
						return first(ctx, k)
					}
				}
				for _, callers := range []int{1, 16, 64} {
					b.Run(fmt.Sprintf("first/callers=%d", callers), func(b *testing.B) { inTurns(b, callers, p.first, p.min.first) })
					b.Run(fmt.Sprintf("replay/callers=%d", callers), func(b *testing.B) { inTurns(b, callers, done(p.replay), done(p.min.replay)) })
					b.Run(fmt.Sprintf("mixed/callers=%d", callers), func(b *testing.B) {
						inTurns(b, callers, mixed(p.first, p.replay), mixed(p.min.first, p.min.replay))
					})
					b.Run(fmt.Sprintf("tx/callers=%d", callers), func(b *testing.B) { inTurns(b, callers, p.business, p.min.business) })
				}
			})
		}
	}
}

// BenchmarkHotKey is many callers on one new key at once: how many statements reach the database for it, and how often the
// work runs.
func BenchmarkHotKey(b *testing.B) {
	for _, d := range databases() {
		b.Run(d.String(), func(b *testing.B) {
			p := open(b, d, 100)
			counted := &counting{Store: p.store}
			g, err := onceward.New(counted, &onceward.Options{SingleTenant: true})
			if err != nil {
				b.Fatal(err)
			}
			op, err := g.Define(onceward.Operation{Name: "hot", Codec: onceward.Raw{}, OnInFlight: onceward.Wait(onceward.DefaultLease)})
			if err != nil {
				b.Fatal(err)
			}
			var runs atomic.Int64
			for range b.N {
				k := key.New()
				together(b, 64, func() error {
					_, err := onceward.Do(b.Context(), op, onceward.Call{Key: k}, func(context.Context) ([]byte, error) {
						runs.Add(1)
						return result, nil
					})
					return err
				})
			}
			b.ReportMetric(float64(counted.n.Load())/float64(b.N), "store-calls/key")
			b.ReportMetric(float64(runs.Load())/float64(b.N), "runs/key")
		})
	}
}

// counting counts the calls of a store.
type counting struct {
	driver.Store
	n atomic.Int64
}

func (c *counting) Claim(ctx context.Context, cl driver.Claim) (driver.Claimed, error) {
	c.n.Add(1)
	return c.Store.Claim(ctx, cl)
}

func (c *counting) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	c.n.Add(1)
	return c.Store.Finish(ctx, f)
}
