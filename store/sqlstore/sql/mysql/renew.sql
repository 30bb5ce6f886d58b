-- Extends an unlapsed lease of this owner and fence, never shortens it, as state.Renew does: a row affected, or the lease is
-- lost, unless nothing had to change.
UPDATE {prefix}records SET
    lease_until = GREATEST(COALESCE(lease_until, UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND), updated_at = UTC_TIMESTAMP(6)
WHERE id = ? AND owner = ? AND fence = ? AND status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6))
