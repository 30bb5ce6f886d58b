-- After a read in the same BEGIN IMMEDIATE that found an unlapsed lease of this owner and fence.
UPDATE {prefix}records SET lease_until = ?, updated_at = ? WHERE id = ?
