-- Extends an unlapsed lease of this owner and fence, never shortens it, as state.Renew does: one row affected, or the lease
-- is lost.
UPDATE {prefix}records SET
    lease_until = greatest(lease_until, clock_timestamp() + $1::bigint * interval '1 microsecond'), updated_at = clock_timestamp()
WHERE id = $2::bytea AND owner = $3::bytea AND fence = $4::bigint
    AND status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > clock_timestamp())
