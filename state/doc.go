// Package state is the transition table of a record, as pure functions: what a claim, a renewal, a finish and a
// settlement make of a record at an instant. Nothing here reads a clock or a store. Stores are tested against it,
// and those that decide in Go call it.
//
//	             claim                        finish
//	(absent) ───────────▶ PROCESSING ───────────────────▶ SUCCESS ──expires──▶ (absent)
//	    ▲                  │  ▲   │                        FAIL final ─expires─▶ (absent)
//	    │                  │  │   └── finish: nothing happened ──▶ FAIL retryable ─expires─▶ (absent)
//	    │                  │  └────── claim ─────────────────────────┘   ▲
//	    │    lapsed + grace│                                             │ settled, on_lapse REPEAT;
//	    │                  ├─ on_lapse REPEAT, attempts left ────────────┤ or resolved: did not happen
//	    │                  │  (a claim takes over at once)               │
//	    │                  └─ otherwise ──▶ FAIL unknown ────────────────┘
//	    │                                     │  ▲  finish: cannot tell
//	    │                                     └──┴─ late truth of the same attempt, or a resolution ─▶ SUCCESS, FAIL final
//
// Who may make which transition: an attempt finishes with its owner and fence, lease over or not, as long as nobody
// claimed or resolved since; only a holder of an unlapsed lease renews; anybody settles a lapse (the record itself
// says how); a resolution needs a person or a resolver. Whose clock rules: the store's, always.
package state
