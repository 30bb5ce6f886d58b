package sqlstore_test

import (
	"testing"
	"time"

	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/storetest"
)

// servers are the SQL servers, each as several kinds of handle reach it.
func servers() map[string]func(t testing.TB) *teststore.Server {
	return map[string]func(t testing.TB) *teststore.Server{
		"postgres": func(t testing.TB) *teststore.Server { return teststore.Postgres(t, "") },
		"mysql":    func(t testing.TB) *teststore.Server { return teststore.MySQL(t, "") },
	}
}

func TestServerConformance(t *testing.T) {
	t.Parallel()
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, server(t).Harness())
		})
	}
}

func TestServerModel(t *testing.T) {
	t.Parallel()
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := server(t).Harness()
			storetest.Model(t, &h, uint64(time.Now().UnixNano()), storetest.Rounds(2_000))
		})
	}
}
