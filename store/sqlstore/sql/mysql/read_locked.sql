-- The newest committed version of a record, however old the transaction's snapshot is, and nobody changes it before the
-- transaction ends. The lock is the shared one that INSERT IGNORE has taken already: two duplicates don't wait for each other.
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = ? LOCK IN SHARE MODE
