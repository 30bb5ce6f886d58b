-- Extends an unlapsed lease of this owner and fence, never shortens it, as state.Renew does: one row affected, or the
-- lease is lost. Times are UTC in one layout, so their order is that of their texts. The clock is read here, after
-- the write lock is taken: waiting for it must not make a lease look longer.
UPDATE {prefix}records SET
    lease_until = CASE WHEN lease_until > ?1 THEN lease_until ELSE ?1 END,
    updated_at = ?2
WHERE id = ?3 AND owner = ?4 AND fence = ?5 AND status = 'PROCESSING' AND (lease_until IS NULL OR lease_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))
