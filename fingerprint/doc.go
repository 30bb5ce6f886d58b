// Package fingerprint digests a request, so that one key used for two different requests is seen.
//
// A [Sum] is a versioned SHA-256. [Of] makes one of a function's argument; a [Hasher] makes one of named parts, such as
// the method, path, query and body of an HTTP request.
//
// What is equal in version 1, and what is not:
//
//   - Bytes and text: byte for byte. An empty body equals an empty body only, whatever its type.
//   - JSON: the order of an object's members, white space and the way a character is escaped do not matter. The order of
//     an array's elements does. Numbers are compared by their exact value (1, 1.0 and 10e-1 are one; so are 0 and -0;
//     9007199254740993 is not 9007199254740992); they never pass through floating point. An absent member is not a null
//     one. Lone surrogates (\ud800) are distinct from each other and from U+FFFD.
//   - What is not JSON, or JSON of more than one meaning, is compared as bytes, apart from anything that is JSON: syntax
//     errors, something behind the value, a byte order mark, invalid UTF-8, a member twice in one object, more than 512
//     containers in each other.
//   - Form and query: pairs are decoded and ordered by name; the order of one name's values matters; a and a= are two
//     things; empty pairs (a=1&&b=2) are dropped. What can't be decoded is compared as bytes, and so is what holds a semicolon, which some take for an
//     ampersand.
//
// When in doubt two requests are different: a false difference is a refusal that somebody sees, a false match would
// answer a request with the result of another.
//
// The digests of a version never change (testdata/v1.json). A new rule is a new version.
package fingerprint
