// Package key names one intent of a client: same intent, same key, however often it is retried.
//
// A [Key] is 1 to 255 bytes of printable ASCII without a blank at either end, compared byte for byte. Keys can be
// secrets (who knows a key can ask for its result), so a Key prints as a short digest everywhere; [Key.Reveal] gives
// the text. One way around that remains: fmt does not call methods on unexported fields, so printing a struct of your
// own that hides a Key in one shows the text. Log the Key itself.
//
// Ways to a Key: [ParseHeader] for what came over HTTP, [Parse] for text from elsewhere, [Compose] from business ids,
// [Derive] for a call further down, [New] for a client that has nothing better.
//
// Everything here is a pure function but New; all of it is safe for concurrent use. testdata/vectors.json has test
// vectors for other languages.
package key
