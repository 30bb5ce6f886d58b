-- A range of the table by place, without an index on what a finish changes, and without the bytes of results and requests.
SELECT {fields}, NULL, NULL, r.namespace, r.tenant, r.caller, r.operation, r.idempotency_key, r.id, r.ctid::text
FROM {prefix}records r WHERE r.ctid > $1::text::tid AND r.ctid < $2::text::tid ORDER BY r.ctid LIMIT $3::bigint
