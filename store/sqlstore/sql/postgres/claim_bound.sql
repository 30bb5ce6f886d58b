-- claim.sql inside a caller's transaction: it waits for another transaction's claim of the same id at most as long as it is
-- told to. Its row puts lock_timeout back, for the statements of the caller that follow; where there is none, wait_before.sql
-- does. Branches of UNION ALL run in their order, so the claim is made before anything is put back.
WITH made AS (
    INSERT INTO {prefix}records (
        id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts, owner,
        lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, request,
        fence, created_at, claimed_at, updated_at
    ) SELECT
        $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea, $8::int, $9::bytea,
        $10::bigint, c.now + $11::bigint * interval '1 microsecond', c.now + $12::bigint * interval '1 microsecond',
        $13::text, c.now + $14::bigint * interval '1 microsecond', $15::bigint, $16::bytea,
        greatest((extract(epoch FROM c.now) * 1000000)::bigint, (SELECT value::bigint + 1 FROM {prefix}meta WHERE name = 'fence_floor')),
        c.now, c.now, c.now
    FROM (
        SELECT clock_timestamp() AS now,
            set_config('onceward.lock_timeout', current_setting('lock_timeout'), true),
            set_config('lock_timeout', coalesce(nullif($17::text, ''), current_setting('lock_timeout')), true)
    ) c
    ON CONFLICT (id) DO NOTHING
    RETURNING created_at, fence
)
SELECT made.created_at, 'INSERTED', NULL, NULL, NULL::int, NULL::int, NULL::int, made.fence,
    NULL::bigint, NULL::bigint, NULL::boolean, NULL::boolean,
    NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz,
    NULL::bytea, NULL::bytea, NULL, NULL::bytea, NULL, NULL, NULL, NULL::bytea, NULL::bytea,
    set_config('lock_timeout', current_setting('onceward.lock_timeout'), true)
FROM made
UNION ALL
SELECT {fields}, r.result, r.request, set_config('lock_timeout', current_setting('onceward.lock_timeout'), true)
FROM {prefix}records r WHERE r.id = $1::bytea
