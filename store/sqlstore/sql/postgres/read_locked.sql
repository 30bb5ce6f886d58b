-- The newest committed version of a record, however old the transaction's snapshot is, and nobody changes it before the
-- transaction ends. Under REPEATABLE READ and above a version newer than the snapshot is an error: begin anew.
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = $1::bytea FOR SHARE
