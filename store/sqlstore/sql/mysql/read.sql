-- A record by somebody who knows its identity, of which id is the digest.
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = ?
