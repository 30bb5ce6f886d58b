// Package archtest holds the shape of the repository by tests: which package lives in which layer and what it may
// import, which third-party modules anybody gets who imports us, and a few house rules that a reader would otherwise
// have to watch for. There is no code here to call; run it with
//
//	go test ./internal/archtest/
//
// With -update it rewrites what is derived: the layer tables in CONTRIBUTING.md and AGENTS.md, and the list of
// dependencies in testdata/deps.golden.
package archtest
