// Package driver is the contract between Onceward and a store.
//
// Users hold an onceward.Guard; what they see of a store is its constructor. A store implements [Store], five calls
// that each make one decision, and optional powers that are found by type assertion ([Sweeper]).
// What each call has to decide is not left to the store: package state holds the transition table as pure
// functions, and a store is right when it equals them.
//
// All times in this package are the store's own. A caller sends durations, never instants, so that a node whose
// clock is off can neither shorten nor stretch a lease.
package driver
