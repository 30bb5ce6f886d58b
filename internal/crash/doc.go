// Package crash holds the crash table: one piece of guarded work with every kind of effect is killed, or loses an answer, before
// and after every single store call and effect, and what comes of it is held against what testdata/crash.txt says beforehand.
// Beside it, processes that are stopped for longer than their lease.
package crash
