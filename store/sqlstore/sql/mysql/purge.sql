-- Drops, of the records named, what has expired by the server's clock. They are given one by one: by a list made of JSON
-- MariaDB would walk the table.
DELETE FROM {prefix}records WHERE id IN ({some})
    AND (status = 'SUCCESS' OR status = 'FAIL' AND failure <> 'UNKNOWN') AND fence <= ? AND expires_at <= UTC_TIMESTAMP(6)
