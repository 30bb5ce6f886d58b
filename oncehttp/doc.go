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
//
// What a guarded handler's writer can do: write, flush (accepted, obeyed once the answer has grown past the limit), send
// 1xx, and through [net/http.ResponseController] set deadlines. Trailers reach the first client and are not replayed. It
// can't be hijacked, since nobody could replay a conversation: 101 leaves the outcome unknown. Requests that are not
// guarded keep all that their writer can.
package oncehttp
