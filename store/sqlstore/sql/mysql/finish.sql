-- What an attempt's end changes, as state.Finish does with a record that its own claim left: one statement reads and writes,
-- and a row affected is an end that stands. LAST_INSERT_ID(x) brings the clock back in the same answer.
UPDATE {prefix}records SET
    status = ?, failure = ?, owner = ?, result_codec = ?, result_meta = ?, result = ?, tombstone = ?, error = ?,
    updated_at = '1970-01-01 00:00:00.000000' + INTERVAL LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) MICROSECOND,
    completed_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE id = ? AND owner = ? AND fence = ? AND (status = 'PROCESSING' OR failure = 'UNKNOWN' OR failure = 'RETRYABLE')
