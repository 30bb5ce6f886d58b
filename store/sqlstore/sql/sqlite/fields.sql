-- What a record is beside its identity; {fields} in the statements that read. The store's clock stands in front: one
-- statement is one snapshot, and SQLite evaluates 'now' once in it.
-- The short fields come as one text: a column costs more on its way out than all of them take to be put together.
format('%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s',
    CAST(round(unixepoch('subsec') * 1000) AS INTEGER), status, failure, on_lapse, attempt, died, max_attempts, fence,
    lease_us, retention_us, tombstone, result IS NOT NULL,
    lease_until, deadline_at, repeatable_until, created_at, claimed_at, updated_at, completed_at, expires_at),
fingerprint, owner, result_codec, result_meta, error, resolution, steps
