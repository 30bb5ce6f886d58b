-- Claims a missing record. The primary key decides: one row affected is a record made, none is somebody else's record. IGNORE
-- can hide no other fault: every text was measured before, and the columns are wide enough. Affected rows of INSERT IGNORE do
-- not depend on clientFoundRows, those of ON DUPLICATE KEY UPDATE would. LAST_INSERT_ID(x) brings the fence back in the same
-- answer: the clock, unless the floor, which the store knows, is ahead of it. Reading the floor here would lock its row in
-- every transaction, and take a third of the time.
INSERT IGNORE INTO {prefix}records (
    id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, request,
    fence, created_at, claimed_at, updated_at
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
    ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, ?, ?,
    LAST_INSERT_ID(GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ?)),
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
)
