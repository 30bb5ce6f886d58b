-- Writes how far an attempt is, unless a later write has overtaken this one, as state.Progress does: one row affected, or the claim is lost. An intent needs an unlapsed
-- lease. The clock is read once.
UPDATE {prefix}records r SET
    steps = $1::text, on_lapse = $2::text, repeatable_until = c.now + $3::bigint * interval '1 microsecond',
    lease_until = CASE WHEN r.status = 'PROCESSING' AND (r.lease_until IS NULL OR r.lease_until > c.now)
        THEN greatest(r.lease_until, c.now + $4::bigint * interval '1 microsecond') ELSE r.lease_until END,
    updated_at = c.now
FROM (SELECT clock_timestamp() AS now) c
WHERE r.id = $5::bytea AND r.owner = $6::bytea AND r.fence = $7::bigint AND (
    r.status = 'PROCESSING' AND (r.lease_until IS NULL OR r.lease_until > c.now)
    OR $8::bigint = 0 AND (r.status = 'PROCESSING' OR r.failure = 'UNKNOWN' OR r.failure = 'RETRYABLE'))
    AND coalesce((r.steps::json ->> 'version')::bigint, 0) <= $9::bigint
