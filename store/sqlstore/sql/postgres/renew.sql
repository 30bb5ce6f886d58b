-- Extends an unlapsed lease of this owner and fence, never shortens it, as state.Renew does: one row affected, or the lease
-- is lost. The clock is read once.
UPDATE {prefix}records r SET
    lease_until = greatest(r.lease_until, c.now + $1::bigint * interval '1 microsecond'), updated_at = c.now
FROM (SELECT clock_timestamp() AS now) c
WHERE r.id = $2::bytea AND r.owner = $3::bytea AND r.fence = $4::bigint
    AND r.status = 'PROCESSING' AND (r.lease_until IS NULL OR r.lease_until > c.now)
