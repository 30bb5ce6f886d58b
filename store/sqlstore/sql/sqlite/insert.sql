-- The unique key decides whether there is no row: one row affected is a record made, none is somebody else's record.
INSERT INTO {prefix}records (
    namespace, tenant, caller, operation, idempotency_key,
    status, failure, fingerprint, attempt, died, max_attempts, fence, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us,
    result_codec, result_meta, result, tombstone, request, error, resolution,
    created_at, updated_at, completed_at, expires_at, id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
