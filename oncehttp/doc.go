// Package oncehttp guards HTTP handlers: the first request of a key runs the handler, every duplicate gets its
// first answer, byte for byte.
//
//	guard, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
//	op, _ := guard.Define(onceward.Operation{Name: "pay", Timeout: time.Minute})
//	once, err := oncehttp.New(op, nil)
//	mux.Handle("POST /pay", once(payHandler))
//
// Put it behind authentication and rate limiting, and inside compression where you can. Nothing leaves before the
// answer is recorded, or has grown past the limit; a handler whose client hung up goes on, and its answer is kept.
package oncehttp
