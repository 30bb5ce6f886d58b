-- Writes how far an attempt is, unless a later write has overtaken this one, as state.Progress does: a row affected, or the claim is lost, unless nothing had to change. An
-- intent needs an unlapsed lease.
UPDATE {prefix}records SET
    steps = ?, on_lapse = ?, repeatable_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
    lease_until = IF(status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6)),
        GREATEST(COALESCE(lease_until, UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND), lease_until),
    updated_at = UTC_TIMESTAMP(6)
WHERE id = ? AND owner = ? AND fence = ? AND (
    status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6))
    OR ? = 0 AND (status = 'PROCESSING' OR failure = 'UNKNOWN' OR failure = 'RETRYABLE'))
    AND COALESCE(CAST(JSON_UNQUOTE(JSON_EXTRACT(steps, '$.version')) AS SIGNED), 0) <= ?
