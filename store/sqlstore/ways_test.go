package sqlstore_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/storetest"
)

// ways are handles that applications really have, and that the store has to be right on.
func ways() map[string]func(t testing.TB) *teststore.Server {
	postgres := func(params string) func(testing.TB) *teststore.Server {
		return func(t testing.TB) *teststore.Server { t.Helper(); return teststore.Postgres(t, params) }
	}
	mysql := func(params string) func(testing.TB) *teststore.Server {
		return func(t testing.TB) *teststore.Server { t.Helper(); return teststore.MySQL(t, params) }
	}
	return map[string]func(testing.TB) *teststore.Server{
		"postgres through PgBouncer": func(t testing.TB) *teststore.Server {
			t.Helper()
			return teststore.PostgresAt(t, teststore.PgBouncer(t, teststore.PostgresURL()), "")
		},
		"postgres REPEATABLE READ":   postgres("default_transaction_isolation=repeatable%20read"),
		"postgres SERIALIZABLE":      postgres("default_transaction_isolation=serializable"),
		"postgres by options":        postgres("options=-c%20default_transaction_isolation%3Dserializable%20-c%20lock_timeout%3D60s"),
		"postgres odd texts":         postgres("TimeZone=Asia/Kathmandu&DateStyle=SQL,DMY&IntervalStyle=sql_standard&bytea_output=escape&extra_float_digits=-10&standard_conforming_strings=off"),
		"postgres simple protocol":   postgres("default_query_exec_mode=simple_protocol"),
		"postgres described":         postgres("default_query_exec_mode=cache_describe&TimeZone=America/New_York"),
		"mysql found rows":           mysql("clientFoundRows=true"),
		"mysql times in Shanghai":    mysql("clientFoundRows=true&parseTime=true&loc=Asia%2FShanghai&time_zone=%27-05%3A00%27"),
		"mysql READ COMMITTED":       mysql("tx_isolation=%27READ-COMMITTED%27"),
		"mysql SERIALIZABLE":         mysql("tx_isolation=%27SERIALIZABLE%27&parseTime=true"),
		"mysql no sql_mode":          mysql("sql_mode=%27%27&time_zone=%27%2B09%3A00%27"),
		"mysql ANSI and traditional": mysql("sql_mode=%27ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES%27"),
		"mysql interpolated":         mysql("interpolateParams=true&collation=utf8mb4_unicode_ci"),
	}
}

// TestWays: the suite, and a walk beside the model, on every way to reach a server. Through the pooler always all of it; a
// third on each of the others, another one on each, unless ONCEWARD_LONG is set.
func TestWays(t *testing.T) {
	t.Parallel()
	all := ways()
	for n, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := all[name](t).Harness()
			for i, c := range storetest.Cases() {
				if (i+n)%3 != 0 && !strings.HasSuffix(name, "PgBouncer") && !longRun() {
					continue
				}
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					c.Run(t, &h)
				})
			}
			t.Run("model", func(t *testing.T) {
				t.Parallel()
				storetest.Model(t, &h, uint64(time.Now().UnixNano()), counted(300, 3_000))
			})
		})
	}
}

func longRun() bool { return os.Getenv("ONCEWARD_LONG") != "" }

// counted returns how often to do something: more when ONCEWARD_LONG is set.
func counted(n, long int) int {
	if longRun() {
		return long
	}
	return n
}
