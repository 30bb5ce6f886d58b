package oncesql_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncesql"
	"github.com/onceward/onceward/store/sqlstore"
)

// Receipt is what a payment returns.
type Receipt struct {
	ID     string
	Amount int64
}

func Example() {
	dir, err := os.MkdirTemp("", "onceward")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := debit(context.Background(), "file:"+filepath.Join(dir, "pay.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate"); err != nil {
		panic(err)
	}
	// Output:
	// {r-1 19900} <nil>
	// {r-1 19900} <nil>
	// balance 100
}

func debit(ctx context.Context, dsn string) error {
	own, err := sql.Open("sqlite3", dsn) // a handle of the store's own
	if err != nil {
		return err
	}
	defer own.Close()
	store, err := sqlstore.Open(ctx, own, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	guard, err := onceward.New(store, &onceward.Options{SingleTenant: true})
	if err != nil {
		return err
	}
	pay, err := guard.Define(onceward.Operation{Name: "pay", Tx: true})
	if err != nil {
		return err
	}

	db, err := sql.Open("sqlite3", dsn) // the work's handle, on the same database
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (7, 20000)"); err != nil {
		return err
	}
	k, err := key.Parse("order-42:alipay")
	if err != nil {
		return err
	}
	for range 2 { // the second call is a duplicate
		receipt, err := oncesql.Do(ctx, pay, db, onceward.Call{Key: k, Request: 19900},
			func(ctx context.Context, tx *sql.Tx) (Receipt, error) {
				_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 19900 WHERE id = 7 AND balance >= 19900")
				return Receipt{ID: "r-1", Amount: 19900}, err
			})
		fmt.Println(receipt, err)
	}
	var balance int
	if err := db.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = 7").Scan(&balance); err != nil {
		return err
	}
	fmt.Println("balance", balance)
	return nil
}

// TestSnippets keeps the Go code of docs/databases.md that of the example above.
func TestSnippets(t *testing.T) {
	t.Parallel()
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	page, err := os.ReadFile("../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 1 && strings.HasPrefix(part, "go\n") {
			if n++; !strings.Contains(squeeze(string(code)), squeeze(strings.TrimPrefix(part, "go\n"))) {
				t.Errorf("this snippet is in no example:\n%s", part)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d snippets", n)
	}
}
