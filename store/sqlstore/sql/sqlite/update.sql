-- Follows a read in the same BEGIN IMMEDIATE: the row is as it was read.
UPDATE {prefix}records SET
    status = ?, failure = ?, fingerprint = ?, attempt = ?, died = ?, max_attempts = ?, fence = ?, owner = ?,
    lease_us = ?, lease_until = ?, deadline_at = ?, on_lapse = ?, repeatable_until = ?, retention_us = ?,
    result_codec = ?, result_meta = ?, result = ?, tombstone = ?, request = ?, error = ?, resolution = ?,
    created_at = ?, updated_at = ?, completed_at = ?, expires_at = ?
WHERE id = ?
