-- Drops, of the records named, what has expired by the server's clock. What somebody holds is in use: it is passed over.
DELETE FROM {prefix}records WHERE id IN (
    SELECT r.id FROM {prefix}records r
    WHERE r.id = ANY (ARRAY(SELECT decode(i, 'hex') FROM json_array_elements_text($1::text::json) i))
        AND (r.status = 'SUCCESS' OR r.status = 'FAIL' AND r.failure <> 'UNKNOWN')
        AND r.fence <= $2::bigint AND r.expires_at <= clock_timestamp()
    FOR UPDATE SKIP LOCKED)
