// Package bench measures what a guard costs beside the hand-written minimum on the same store, in the same run, in turns.
package bench
