-- Writes what was decided on the row that was read, if it still is that row: every claim and every resolution has a fence
-- of its own, an end that keeps the fence changes status or failure, and a renewal changes updated_at.
UPDATE {prefix}records SET
    status = ?, failure = ?, fingerprint = ?, attempt = ?, died = ?, max_attempts = ?, fence = ?, owner = ?,
    lease_us = ?, lease_until = ?, deadline_at = ?, on_lapse = ?, repeatable_until = ?, retention_us = ?,
    result_codec = ?, result_meta = ?, result = ?, tombstone = ?, request = ?, error = ?, resolution = ?, steps = ?,
    created_at = ?, claimed_at = ?, updated_at = ?, completed_at = ?, expires_at = ?
WHERE id = ? AND fence = ? AND owner = ? AND status = ? AND failure = ? AND updated_at = ?
