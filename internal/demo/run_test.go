package demo_test

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"
	"go.uber.org/goleak"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/demo"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/sqlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func stores(t *testing.T) map[string]driver.Store {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "demo.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	lite, err := sqlstore.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lite.Close(); _ = db.Close() })
	return map[string]driver.Store{"memory": memstore.New(nil), "sqlite": lite}
}

func TestAccidentAndCure(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep, err := demo.Run(t.Context(), demo.Options{Users: 40, Speed: 100, Store: store, StoreName: name})
			if err != nil {
				t.Fatal(err)
			}
			if err := rep.OK(); err != nil {
				t.Fatal(err)
			}
			if rep.V3.Charges != 40 || rep.V3.Lost == 0 || rep.V3.Replayed == 0 || rep.V0.Charges <= 40 {
				t.Fatalf("%+v", rep)
			}
			var out bytes.Buffer
			if err := rep.Table(&out); err != nil || !strings.Contains(out.String(), "users charged twice") {
				t.Fatalf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestOKCanFail: an unprotected shop in V3's place is seen.
func TestOKCanFail(t *testing.T) {
	t.Parallel()
	rep, err := demo.Run(t.Context(), demo.Options{Users: 10, Speed: 100, Store: memstore.New(nil), StoreName: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	rep.V3 = rep.V0
	if rep.OK() == nil {
		t.Fatal("an unprotected shop passed")
	}
}
