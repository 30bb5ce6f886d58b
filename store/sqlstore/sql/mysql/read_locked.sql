-- The newest committed version of a record, however old the transaction's snapshot is, and nobody changes it before the
-- transaction ends.
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = ? FOR UPDATE
