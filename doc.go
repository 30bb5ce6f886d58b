// Package onceward makes work that may be run twice take effect once.
//
// A [Guard] stands over a store. Work is named by an [Operation] with its policies, and one intent of a client by a
// key inside a scope. [Do] claims the key, runs the function at most once, records its result, and gives every
// duplicate the first result:
//
//	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
//	pay, err := guard.Define(onceward.Operation{Name: "pay"})
//	receipt, err := onceward.Do(ctx, pay, onceward.Call{Key: k, Request: req},
//		func(ctx context.Context) (Receipt, error) { return charge(ctx, req) })
//
// Delivery is at least once; nobody can make it exactly once. What is guaranteed: for one key at most one attempt
// holds a valid claim at any moment; every duplicate gets the first result until it expires; and an attempt whose
// effects nobody can tell is never run again by guessing: the outcome is unknown, and says so.
//
// [Guard.Begin] is the narrow waist under Do: front doors for HTTP, messages and jobs are written on it.
package onceward
