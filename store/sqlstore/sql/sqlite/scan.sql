-- A range of the table by rowid, without an index on what a finish changes and without result bytes.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), rowid,
       id, namespace, tenant, caller, operation, idempotency_key,
       status, failure, fingerprint, attempt, died, max_attempts, fence, owner,
       lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us,
       result_codec, result_meta, NULL, result IS NOT NULL, tombstone,
       NULL, error, resolution, created_at, updated_at, completed_at, expires_at
FROM {prefix}records WHERE rowid > ? ORDER BY rowid LIMIT ?
