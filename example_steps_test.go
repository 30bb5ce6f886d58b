package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

// A transfer calls a bank, which knows no keys, and an SMS service, which honours them for a day. The first attempt breaks
// after the bank answered; the next one goes on from there.
func Example_steps() {
	ctx := context.Background()
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		panic(err)
	}
	transfer, err := guard.Define(onceward.Money("transfer",
		onceward.Effect{Name: "bank", Way: onceward.ByStep},
		onceward.Effect{Name: "sms", Way: onceward.ByStep, HonouredFor: 24 * time.Hour},
	))
	if err != nil {
		panic(err)
	}
	fmt.Print(transfer.Manifest())

	k, err := key.Compose("transfer", 42)
	if err != nil {
		panic(err)
	}
	for try := range 2 {
		ref, err := onceward.Do(ctx, transfer, onceward.Call{Key: k}, func(ctx context.Context) (string, error) {
			ref, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) {
				fmt.Println("the bank is called")
				return "ref-7", nil
			})
			if err != nil {
				return "", err
			}
			_, err = onceward.Step(ctx, "sms", func(ctx context.Context) (string, error) {
				_, err := onceward.StepKey(ctx, "sms") // goes with the call: the same on every attempt
				if err == nil && try == 0 {
					err = onceward.Retryable(errors.New("busy, try later"))
				}
				return "sent", err
			})
			return ref, err
		})
		fmt.Printf("%q %v\n", ref, err)
	}

	// Output:
	// operation transfer: an attempt that dies is run again, because every effect is kept to once when it is repeated
	// effect  kept to once by  key honoured for  twice           when an attempt dies in it
	// bank    step             -                 can't be borne  unknown until somebody resolves it
	// sms     step             24h0m0s           can't be borne  called again with the same key within 24h0m0s, then unknown
	// the bank is called
	// "" busy, try later
	// "ref-7" <nil>
}
