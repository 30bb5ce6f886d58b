-- What an attempt's end changes, as state.Finish does with a record that its own claim left: one statement reads and writes,
-- and a row that comes back is an end that stands. It changes no indexed column, so the new version stays on its page (HOT).
UPDATE {prefix}records r SET
    status = $1::text, failure = $2::text, owner = $3::bytea, result_codec = $4::text, result_meta = $5::bytea,
    result = $6::bytea, tombstone = $7::bigint <> 0, error = $8::text, updated_at = c.now,
    completed_at = c.now + $9::bigint * interval '1 microsecond', expires_at = c.now + $10::bigint * interval '1 microsecond'
FROM (SELECT clock_timestamp() AS now) c
WHERE r.id = $11::bytea AND r.owner = $12::bytea AND r.fence = $13::bigint
    AND (r.status = 'PROCESSING' OR r.failure = 'UNKNOWN' OR r.failure = 'RETRYABLE')
RETURNING r.updated_at
