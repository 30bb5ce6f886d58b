-- A range of the table by rowid, without an index on what a finish changes, and without the bytes of results and requests.
SELECT {fields}, NULL, NULL, namespace, tenant, caller, operation, idempotency_key, id, rowid
FROM {prefix}records WHERE rowid > ? ORDER BY rowid LIMIT ?
