-- Drops, of the records named, what has expired.
DELETE FROM {prefix}records WHERE id IN (SELECT unhex(value) FROM json_each(?))
    AND (status = 'SUCCESS' OR status = 'FAIL' AND failure <> 'UNKNOWN') AND fence <= ? AND expires_at <= ?
