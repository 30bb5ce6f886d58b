-- A whole record.
SELECT {fields}, r.result, r.request, r.namespace, r.tenant, r.caller, r.operation, r.idempotency_key
FROM {prefix}records r WHERE r.id = ?
