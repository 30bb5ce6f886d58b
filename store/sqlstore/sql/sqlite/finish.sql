-- What an attempt's end changes, as state.Finish does with a record that its own claim left: one statement reads and
-- writes, and one row affected is an end that stands. None is left to a read in BEGIN IMMEDIATE.
UPDATE {prefix}records SET
    status = ?, failure = ?, owner = ?, result_codec = ?, result_meta = ?, result = ?, tombstone = ?, error = ?,
    updated_at = ?, completed_at = ?, expires_at = ?
WHERE id = ? AND owner = ? AND fence = ? AND (status = 'PROCESSING' OR failure = 'UNKNOWN' OR failure = 'RETRYABLE')
