package onceward_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// Receipt is what a payment returns.
type Receipt struct {
	ID     string
	Amount int64
}

func Example() {
	ctx := context.Background()
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		panic(err)
	}
	pay, err := guard.Define(onceward.Operation{Name: "pay"})
	if err != nil {
		panic(err)
	}
	k, err := key.Compose("order-42", "alipay")
	if err != nil {
		panic(err)
	}

	for range 2 { // the second call is a duplicate
		receipt, err := onceward.Do(ctx, pay, onceward.Call{Key: k, Request: 19900},
			func(context.Context) (Receipt, error) {
				fmt.Println("the bank is called")
				return Receipt{ID: "r-1", Amount: 19900}, nil
			})
		fmt.Println(receipt, err)
	}
	// Output:
	// the bank is called
	// {r-1 19900} <nil>
	// {r-1 19900} <nil>
}

func Example_http() {
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		panic(err)
	}
	pay, err := guard.Define(onceward.Operation{Name: "pay", Timeout: time.Minute}) // a handler that hangs holds its key this long
	if err != nil {
		panic(err)
	}
	once, err := oncehttp.New(pay, nil)
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.Handle("POST /pay", once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("the bank is called")
		w.WriteHeader(http.StatusCreated)
	})))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(`{"amount":19900}`))
		r.Header.Set("Idempotency-Key", "order-42:alipay")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}
	// Output:
	// the bank is called
	// 201 executed
	// 201 replayed
}

// TestReadmeSnippets keeps the README's Go code the code of the examples above.
func TestReadmeSnippets(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	code, n := "", 0
	for _, name := range []string{"example_test.go", "example_sqlite_test.go"} {
		example, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code += squeeze(string(example))
	}
	for i, part := range strings.Split(string(readme), "```") {
		if i%2 == 1 && strings.HasPrefix(part, "go\n") {
			n++
			if snippet := squeeze(strings.TrimPrefix(part, "go\n")); !strings.Contains(code, snippet) {
				t.Errorf("this snippet of the README is in no example:\n%s", part)
			}
		}
	}
	if n == 0 {
		t.Error("the README shows no Go code")
	}
}
