-- Writes what was decided on the row that was read, if it still is that row: every claim and every resolution has a fence
-- of its own, an end that keeps the fence changes status or failure, and a renewal changes updated_at.
UPDATE {prefix}records SET
    status = $1::text, failure = $2::text, fingerprint = $3::bytea, attempt = $4::int, died = $5::int,
    max_attempts = $6::int, fence = $7::bigint, owner = $8::bytea,
    lease_us = $9::bigint, lease_until = $10::text::timestamptz, deadline_at = $11::text::timestamptz, on_lapse = $12::text,
    repeatable_until = $13::text::timestamptz, retention_us = $14::bigint,
    result_codec = $15::text, result_meta = $16::bytea, result = $17::bytea, tombstone = $18::bigint <> 0,
    request = $19::bytea, error = $20::text, resolution = $21::text, steps = $22::text,
    created_at = $23::text::timestamptz, claimed_at = $24::text::timestamptz, updated_at = $25::text::timestamptz,
    completed_at = $26::text::timestamptz, expires_at = $27::text::timestamptz
WHERE id = $28::bytea AND fence = $29::bigint AND owner = $30::bytea AND status = $31::text AND failure = $32::text
    AND updated_at = $33::text::timestamptz
