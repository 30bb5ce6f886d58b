-- A range of the table by its primary key, without an index on what a finish changes, and without the bytes of results and
-- requests.
SELECT {fields}, NULL, NULL, r.namespace, r.tenant, r.caller, r.operation, r.idempotency_key, r.id, LOWER(HEX(r.id))
FROM {prefix}records r WHERE r.id > ? ORDER BY r.id LIMIT ?
