-- Makes a record as it was decided on a row that was missing, if it still is.
INSERT INTO {prefix}records (
    id, namespace, tenant, caller, operation, idempotency_key,
    status, failure, fingerprint, attempt, died, max_attempts, fence, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us,
    result_codec, result_meta, result, tombstone, request, error, resolution, steps,
    created_at, claimed_at, updated_at, completed_at, expires_at
) VALUES (
    $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text,
    $7::text, $8::text, $9::bytea, $10::int, $11::int, $12::int, $13::bigint, $14::bytea,
    $15::bigint, $16::text::timestamptz, $17::text::timestamptz, $18::text, $19::text::timestamptz, $20::bigint,
    $21::text, $22::bytea, $23::bytea, $24::bigint <> 0, $25::bytea, $26::text, $27::text, $28::text,
    $29::text::timestamptz, $30::text::timestamptz, $31::text::timestamptz, $32::text::timestamptz, $33::text::timestamptz
) ON CONFLICT (id) DO NOTHING
