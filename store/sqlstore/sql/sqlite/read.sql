-- The store's clock and the record, if there is one, in one statement: one snapshot, and SQLite evaluates 'now' once
-- per statement. Inside BEGIN IMMEDIATE nobody else can write between this read and the write that follows from it.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER),
       r.id, r.namespace, r.tenant, r.caller, r.operation, r.idempotency_key,
       r.status, r.failure, r.fingerprint, r.attempt, r.died, r.max_attempts, r.fence, r.owner,
       r.lease_us, r.lease_until, r.deadline_at, r.on_lapse, r.repeatable_until, r.retention_us,
       r.result_codec, r.result_meta, r.result, r.result IS NOT NULL, r.tombstone,
       r.request, r.error, r.resolution, r.created_at, r.updated_at, r.completed_at, r.expires_at
FROM (SELECT 1) LEFT JOIN {prefix}records AS r ON r.id = ?
