package onceward

import "time"

// Money returns an operation for what must never happen twice: payments, refunds, transfers. It refuses when the store is
// down, takes a plain error for unknown while an effect may have begun, and every step has to be on the manifest. Keep its
// records in SQL. The articles' triangle: correctness before speed and ease.
func Money(name string, effects ...Effect) Operation {
	return Operation{Name: name, Effects: effects, OnError: Strict, OnStoreDown: Closed, StrictSteps: len(effects) > 0, Retention: 24 * time.Hour}
}

// General returns an operation with all defaults, for most work: ease first.
func General(name string, effects ...Effect) Operation {
	return Operation{Name: name, Effects: effects}
}

// Fast returns an operation for what is frequent and small: its results are kept for an hour, attempts are short, and when
// all its effects may happen twice it runs unguarded while the store is down. Speed first.
func Fast(name string, effects ...Effect) Operation {
	o := Operation{Name: name, Effects: effects, Retention: time.Hour, Lease: 10 * time.Second, Timeout: 30 * time.Second}
	if Effects(effects).bearable() {
		o.OnStoreDown = Open
	}
	return o
}
