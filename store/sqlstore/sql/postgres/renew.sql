-- Extends an unlapsed lease of this owner and fence, never shortens it, as state.Renew does: one row affected, or the lease
-- is lost. The clock is read once. It waits a second at most for somebody who has locked the row: the heartbeats of other
-- keys are behind it.
UPDATE {prefix}records r SET
    lease_until = greatest(r.lease_until, c.now + $1::bigint * interval '1 microsecond'), updated_at = c.now
FROM (SELECT clock_timestamp() AS now, set_config('lock_timeout', '1000', true)) c
WHERE r.id = $2::bytea AND r.owner = $3::bytea AND r.fence = $4::bigint
    AND r.status = 'PROCESSING' AND (r.lease_until IS NULL OR r.lease_until > c.now)
