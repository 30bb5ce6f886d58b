package onceward_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/sqlstore"
)

func Example_program() {
	dir, err := os.MkdirTemp("", "onceward")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := program(context.Background(), filepath.Join(dir, "pay.db")); err != nil {
		panic(err)
	}
	// Output:
	// the bank is called
	// {r-1 19900} <nil>
	// {r-1 19900} <nil>
	// another amount under the same key: true
}

func program(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := sqlstore.Open(ctx, db, nil) // makes the tables in an empty file
	if err != nil {
		return err
	}
	defer store.Close()
	guard, err := onceward.New(store, &onceward.Options{SingleTenant: true}) // or Call.Scope says who the caller is
	if err != nil {
		return err
	}
	defer guard.Close(ctx) // before the store: it waits for attempts and for results on their way
	pay, err := guard.Define(onceward.Operation{Name: "pay"})
	if err != nil {
		return err
	}

	charge := func(amount int64) (Receipt, error) {
		k, err := key.Parse("order-42:alipay") // what the client sent; key.Compose builds one from parts
		if err != nil {
			return Receipt{}, err
		}
		return onceward.Do(ctx, pay, onceward.Call{Key: k, Request: amount},
			func(context.Context) (Receipt, error) {
				fmt.Println("the bank is called")
				return Receipt{ID: "r-1", Amount: amount}, nil
			})
	}
	fmt.Println(charge(19900))
	fmt.Println(charge(19900)) // a duplicate: the bank is not called
	_, err = charge(1)
	fmt.Println("another amount under the same key:", errors.Is(err, onceward.ErrMismatch))

	_, err = janitor.Sweep(ctx, store, nil) // now and then, in any process: settles attempts that died
	return err
}
