-- What a record is beside its identity; {fields} in the statements that read. The store's clock stands in front, and not
-- the transaction's start: a transaction may have begun long ago.
clock_timestamp(), r.status, r.failure, r.on_lapse, r.attempt, r.died, r.max_attempts, r.fence,
r.lease_us, r.retention_us, r.tombstone, r.result IS NOT NULL,
r.lease_until, r.deadline_at, r.repeatable_until, r.created_at, r.claimed_at, r.updated_at, r.completed_at, r.expires_at,
r.fingerprint, r.owner, r.result_codec, r.result_meta, r.error, r.resolution, r.steps
