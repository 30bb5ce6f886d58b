-- A whole record.
SELECT {fields}, result, request, namespace, tenant, caller, operation, idempotency_key FROM {prefix}records WHERE id = ?
