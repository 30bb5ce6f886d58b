-- What an attempt's end changes, after a read in the same BEGIN IMMEDIATE.
UPDATE {prefix}records SET
    status = ?, failure = ?, owner = ?, result_codec = ?, result_meta = ?, result = ?, tombstone = ?, error = ?,
    updated_at = ?, completed_at = ?, expires_at = ?
WHERE id = ?
