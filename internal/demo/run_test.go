package demo_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
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

const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"

func stores(t *testing.T) map[string]driver.Store {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "demo.db")+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	lite, err := sqlstore.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lite.Close() })
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
			// 40 users click twice, 4 of them a third time.
			const clicks, over = 84, 44 * 19900
			v0 := rep.V0
			if v0.ChargedTwice != 40 || v0.Overcharged != over || v0.Charges != clicks || v0.Orders != clicks || v0.SMS != clicks || v0.Points != clicks {
				t.Errorf("V0's effects: %+v", v0)
			}
			if v0.WithKey != 0 || v0.NotOnce != 40 || v0.NeverSettled != v0.Open || v0.Open == 0 {
				t.Errorf("V0's answers: %+v", v0)
			}
			v3 := rep.V3
			if v3.ChargedTwice != 0 || v3.Overcharged != 0 || v3.Charges != 40 || v3.Orders != 40 || v3.SMS != 40 || v3.Points != 40 || v3.NotOnce != 0 {
				t.Errorf("V3's effects: %+v", v3)
			}
			if v3.WithKey != 40 || v3.Succeeded != 40 || v3.Receipts != 40 || v3.MostReceipts != 1 {
				t.Errorf("V3's receipts: %+v", v3)
			}
			if v3.Open == 0 || v3.ByReplay+v3.ByRunning != v3.Open || v3.ByReplay == 0 || v3.NeverSettled != 0 {
				t.Errorf("V3's open outcomes: %+v", v3)
			}
		})
	}
}

func TestReportForms(t *testing.T) {
	t.Parallel()
	rep, err := demo.Run(t.Context(), demo.Options{Users: 10, Speed: 200, Store: memstore.New(nil), StoreName: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := rep.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"users charged twice", "¥2189.00", "none", "V0 sends none", "settled by a replay", "Store: memory", "11s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	text, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var back demo.Report
	if err := json.Unmarshal(text, &back); err != nil || back != rep {
		t.Errorf("through JSON: %v\n%+v\n%+v", err, rep, back)
	}
}

// TestOKNamesEveryDifference: each number that OK stands on makes it fail alone.
func TestOKNamesEveryDifference(t *testing.T) {
	t.Parallel()
	good := demo.Report{Users: 3, V0: demo.Side{ChargedTwice: 1}, V3: demo.Side{
		Charges: 3, Orders: 3, SMS: 3, Points: 3, Succeeded: 3, Receipts: 3, MostReceipts: 1,
	}}
	if err := good.OK(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*demo.Report)
		want   string
	}{
		"no accident":     {func(r *demo.Report) { r.V0.ChargedTwice = 0 }, "nothing is shown"},
		"charges":         {func(r *demo.Report) { r.V3.Charges++ }, "4 charges"},
		"orders":          {func(r *demo.Report) { r.V3.Orders++ }, "4 order rows"},
		"SMS":             {func(r *demo.Report) { r.V3.SMS-- }, "2 SMS"},
		"points":          {func(r *demo.Report) { r.V3.Points++ }, "4 points"},
		"answers":         {func(r *demo.Report) { r.V3.Succeeded-- }, "2 success answers"},
		"shared receipts": {func(r *demo.Report) { r.V3.Receipts-- }, "2 different receipts"},
		"charged twice":   {func(r *demo.Report) { r.V3.ChargedTwice++ }, "1 users were charged twice"},
		"uneven":          {func(r *demo.Report) { r.V3.NotOnce = 2 }, "2 have not exactly one"},
		"two receipts":    {func(r *demo.Report) { r.V3.MostReceipts = 2 }, "saw 2 different receipts"},
		"no receipts":     {func(r *demo.Report) { r.V3.MostReceipts = 0 }, "saw 0 different receipts"},
		"open":            {func(r *demo.Report) { r.V3.NeverSettled = 1 }, "1 outcomes stayed open"},
		"a failure":       {func(r *demo.Report) { r.V3.Failure = "user 1 never saw a success" }, "user 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good
			c.change(&r)
			if err := r.OK(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := demo.Run(t.Context(), demo.Options{Users: -1, Speed: math.NaN()})
	for _, want := range []string{"users", "speed", "Store"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// cancelAt cancels when its text is written, and keeps what it got.
type cancelAt struct {
	text   string
	cancel context.CancelCauseFunc
	got    bytes.Buffer
}

var errEnough = errors.New("enough")

func (c *cancelAt) Write(p []byte) (int, error) { // progress comes from one goroutine at a time
	if strings.Contains(string(p), c.text) {
		c.cancel(errEnough)
	}
	return c.got.Write(p)
}

// TestCancel: a run ends when it is told to, in either version, with nothing left behind (TestMain looks).
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"V0", "V3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w := &cancelAt{text: at, cancel: cancel}
			_, err := demo.Run(ctx, demo.Options{Users: 400, Speed: 100, Store: memstore.New(nil), Progress: w})
			if !errors.Is(err, errEnough) {
				t.Fatalf("%v", err)
			}
			if out := w.got.String(); strings.Contains(out, at+" [========================================]") || !strings.Contains(out, "\r") {
				t.Fatalf("%q", out)
			}
		})
	}
}
