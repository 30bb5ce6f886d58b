-- What a record is beside its identity; {fields} in the statements that read. The store's clock stands in front. Times come
-- as text, so that no setting of the driver shifts them.
CAST(UTC_TIMESTAMP(6) AS CHAR), r.status, r.failure, r.on_lapse, r.attempt, r.died, r.max_attempts, r.fence,
r.lease_us, r.retention_us, r.tombstone, r.result IS NOT NULL,
CAST(r.lease_until AS CHAR), CAST(r.deadline_at AS CHAR), CAST(r.repeatable_until AS CHAR), CAST(r.created_at AS CHAR),
CAST(r.claimed_at AS CHAR), CAST(r.updated_at AS CHAR), CAST(r.completed_at AS CHAR), CAST(r.expires_at AS CHAR),
r.fingerprint, r.owner, r.result_codec, r.result_meta, r.error, r.resolution, r.steps
