-- Claims a missing record. The primary key decides: one row affected is a record made, none is somebody else's record, or a
-- fence floor that has reached the clock. IGNORE can hide no other fault: every text was measured before, and the columns are
-- wide enough. Affected rows of INSERT IGNORE do not depend on clientFoundRows, those of ON DUPLICATE KEY UPDATE would.
-- LAST_INSERT_ID(x) brings the clock, which is the fence, back in the same answer.
INSERT IGNORE INTO {prefix}records (
    id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, request,
    fence, created_at, claimed_at, updated_at
) SELECT
    ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
    ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, ?, ?,
    LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM {prefix}meta m, {prefix}meta i
WHERE i.name = 'store_id' AND i.value = ? AND m.name = 'fence_floor' AND CAST(m.value AS SIGNED) < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
