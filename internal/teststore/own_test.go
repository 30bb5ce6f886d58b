package teststore_test

import (
	"database/sql"
	"io"
	"net"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/teststore"
)

// TestOwn: a server that is killed comes back with what it had, on the same port.
func TestOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server func(*testing.T) (*teststore.Own, *teststore.Server)
	}{
		{"postgres", func(t *testing.T) (*teststore.Own, *teststore.Server) {
			own := teststore.OwnPostgres(t, "work_mem=1MB")
			return own, teststore.PostgresAt(t, own.DSN, "")
		}},
		{"mysql", func(t *testing.T) (*teststore.Own, *teststore.Server) {
			own := teststore.OwnMySQL(t, "sort-buffer-size=64K")
			return own, teststore.MySQLAt(t, own.DSN, "")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own, server := c.server(t)
			exec(t, server.Admin, "CREATE TABLE "+server.Schema+".t (n int)")
			for n, end := range []func(){own.Kill, own.Stop} {
				exec(t, server.Admin, "INSERT INTO "+server.Schema+".t VALUES (1)")
				end()
				if err := server.Admin.PingContext(t.Context()); err == nil {
					t.Error("it still answers")
				}
				own.Start()
				var rows int
				if err := server.Admin.QueryRowContext(t.Context(), "SELECT count(*) FROM "+server.Schema+".t").Scan(&rows); err != nil || rows != n+1 {
					t.Errorf("%d rows, %v", rows, err)
				}
			}
		})
	}
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// TestProxy: the proxy does what it says to a server that answers every byte with two.
func TestProxy(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got := make(chan byte, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 1)
				for {
					if _, err := c.Read(b); err != nil {
						_ = c.Close()
						return
					}
					got <- b[0]
					_, _ = c.Write([]byte{b[0], b[0]})
				}
			}()
		}
	}()
	p := teststore.NewProxy(t, l.Addr().String())
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn, b byte) (answer string, err error) {
		if _, err := c.Write([]byte{b}); err != nil {
			return "", err
		}
		buf := make([]byte, 2)
		n, err := io.ReadFull(c, buf)
		return string(buf[:n]), err
	}
	c := dial()
	for range 3 {
		if a, err := ask(c, 'a'); a != "aa" || err != nil {
			t.Fatal(a, err)
		}
	}
	if n := p.Trips(); n != 3 {
		t.Errorf("%d round trips, want 3", n)
	}
	p.CutAfter(3)
	if a, err := ask(c, 'b'); a != "bb" || err != nil {
		t.Error("cut too early:", a, err)
	}
	if a, err := ask(c, 'c'); a != "c" || err == nil {
		t.Errorf("cut after 3 bytes gave %q, %v", a, err)
	}
	for len(got) > 0 {
		<-got
	}
	lost := p.LoseReply("y")
	c = dial()
	if a, err := ask(c, 'x'); a != "xx" || err != nil {
		t.Error("another request's answer:", a, err)
	}
	if a, err := ask(c, 'y'); a != "" || err == nil {
		t.Errorf("the lost answer: %q, %v", a, err)
	}
	<-lost
	if x, y := <-got, <-got; x != 'x' || y != 'y' {
		t.Errorf("the server got %c %c", x, y)
	}
	p.Delay(30 * time.Millisecond)
	start := time.Now()
	if a, err := ask(dial(), 'd'); a != "dd" || err != nil || time.Since(start) < 30*time.Millisecond {
		t.Error(a, err, time.Since(start))
	}
	p.Refuse(true)
	if a, err := ask(dial(), 'r'); err == nil {
		t.Error("not refused:", a)
	}
	p.Refuse(false)
	if a, err := ask(dial(), 'r'); a != "rr" || err != nil {
		t.Error(a, err)
	}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	primary := teststore.OwnPostgres(t)
	replica := primary.Replica(t).Open(t)
	var following bool
	if err := replica.QueryRowContext(t.Context(), "SELECT pg_is_in_recovery()").Scan(&following); err != nil || !following {
		t.Errorf("%v %v", following, err)
	}
}

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	server := teststore.PostgresAt(t, teststore.PgBouncer(t, teststore.PostgresURL()), "")
	exec(t, server.Admin, "CREATE TABLE "+server.Schema+".t (n int)")
}
