-- Writes how far an attempt is, unless a later write has overtaken this one, as state.Progress does: one row affected, or the claim is lost. An intent needs an unlapsed
-- lease; the clock is read here, after the write lock is taken.
UPDATE {prefix}records SET
    steps = ?1, on_lapse = ?2, repeatable_until = ?3,
    lease_until = CASE
        WHEN status <> 'PROCESSING' OR lease_until <= strftime('%Y-%m-%d %H:%M:%f000', 'now') OR lease_until > ?4 THEN lease_until
        ELSE ?4 END,
    updated_at = ?10
WHERE id = ?5 AND owner = ?6 AND fence = ?7 AND COALESCE(json_extract(steps, '$.version'), 0) <= ?9 AND (
    status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))
    OR ?8 = 0 AND (status = 'PROCESSING' OR failure = 'UNKNOWN' OR failure = 'RETRYABLE'))
