-- Makes a record as it was decided on a row that was missing, if it still is.
INSERT IGNORE INTO {prefix}records (
    id, namespace, tenant, caller, operation, idempotency_key,
    status, failure, fingerprint, attempt, died, max_attempts, fence, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us,
    result_codec, result_meta, result, tombstone, request, error, resolution, steps,
    created_at, claimed_at, updated_at, completed_at, expires_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
