package doctor_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/internal/doctor"
	"github.com/onceward/onceward/internal/migrate"
	"github.com/onceward/onceward/internal/teststore"
)

func targets(t *testing.T) map[string]migrate.Target {
	t.Helper()
	pg, my := teststore.Postgres(t, ""), teststore.MySQL(t, "")
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	return map[string]migrate.Target{
		"postgres": {DB: pg.Admin, Dialect: pg.Dialect, Schema: pg.Schema},
		"mysql":    {DB: my.Admin, Dialect: my.Dialect, Schema: my.Schema},
		"sqlite":   {DB: f.DB, Dialect: dialect.SQLite},
	}
}

// TestEveryQuestionIsAnswered by the real servers, and missing tables are an error with the command that mends them.
func TestEveryQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	for name, target := range targets(t) {
		before := doctor.Examine(t.Context(), name, target)
		if _, err := migrate.Up(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		after := doctor.Examine(t.Context(), name, target)
		for _, f := range after.Findings {
			if strings.Contains(f.Found, "can't be asked") || f.What == "" || f.Found == "" || (f.Level == doctor.Fine) != (f.Cost == "") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if name != "sqlite" && (before.Healthy() || before.Findings[0].Level != doctor.Wrong || !strings.Contains(before.Findings[0].Cure, "migrate up")) {
			t.Errorf("%s: tables are missing, and it finds %+v", name, before.Findings[0])
		}
		if after.Findings[0].Level != doctor.Fine {
			t.Errorf("%s: %+v", name, after.Findings[0])
		}
	}
}

// TestFaultsAreFound: what a session can be told to be is seen.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server func() *teststore.Server
		what   string
		level  doctor.Level
	}{
		"claims may be lost": {func() *teststore.Server { return teststore.Postgres(t, "options=-csynchronous_commit%3Doff") }, "synchronous_commit", doctor.Wrong},
		"serializable": {func() *teststore.Server {
			return teststore.Postgres(t, "options=-cdefault_transaction_isolation%3Dserializable")
		}, "isolation", doctor.Worth},
		"hasty":               {func() *teststore.Server { return teststore.Postgres(t, "options=-cstatement_timeout%3D200") }, "statement_timeout", doctor.Risky},
		"never committed":     {func() *teststore.Server { return teststore.MySQL(t, "autocommit=0") }, "autocommit", doctor.Wrong},
		"MySQL, serializable": {func() *teststore.Server { return teststore.MySQL(t, "tx_isolation=%27SERIALIZABLE%27") }, "isolation", doctor.Worth},
	} {
		s := c.server()
		rep := doctor.Examine(t.Context(), name, migrate.Target{DB: s.Admin, Dialect: s.Dialect, Schema: s.Schema})
		found := false
		for _, f := range rep.Findings {
			if f.What == c.what {
				found = f.Level == c.level && f.Cost != ""
			}
		}
		if !found {
			t.Errorf("%s: %+v", name, rep)
		}
	}
}

// TestNoDatabase is one finding, which says what to look at.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/x?connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rep := doctor.Examine(t.Context(), "away", migrate.Target{DB: db, Dialect: dialect.PostgreSQL})
	if rep.Healthy() || len(rep.Findings) != 1 || rep.Findings[0].Cure == "" {
		t.Errorf("%+v", rep)
	}
}
