-- Claims a missing record or reads the one that is there, in one round trip. The primary key decides: ON CONFLICT DO NOTHING
-- waits for whoever is inserting the same id, at most lock_timeout, and inserts nothing if that commits. A record that is
-- there is read from the snapshot, without a lock and without a byte of WAL. No row but the last means that it was committed
-- after the snapshot: ask again, never take it for "in progress". A claim that finds its fence at or below the floor of what
-- was purged begins above it.
-- A transaction of another database than the store's makes and finds nothing.
-- The last row puts lock_timeout back, for a transaction that goes on; branches of UNION ALL run in this order.
WITH wait AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS before,
        set_config('lock_timeout', coalesce(nullif($17::text, ''), current_setting('lock_timeout')), true) AS now
), clock AS MATERIALIZED (
    SELECT c.now, greatest((extract(epoch FROM c.now) * 1000000)::bigint, m.value::bigint + 1) AS fence
    FROM wait, {prefix}meta m, {prefix}meta i, LATERAL (SELECT clock_timestamp() AS now) c
    WHERE m.name = 'fence_floor' AND i.name = 'store_id' AND i.value = $18::text AND wait.now IS NOT NULL
), made AS (
    INSERT INTO {prefix}records (
        id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts, owner,
        lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, request,
        fence, created_at, claimed_at, updated_at
    ) SELECT
        $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea, $8::int, $9::bytea,
        $10::bigint, clock.now + $11::bigint * interval '1 microsecond', clock.now + $12::bigint * interval '1 microsecond',
        $13::text, clock.now + $14::bigint * interval '1 microsecond', $15::bigint, $16::bytea,
        clock.fence, clock.now, clock.now, clock.now
    FROM clock
    ON CONFLICT (id) DO NOTHING
    RETURNING created_at, fence
)
SELECT made.created_at, 'INSERTED', NULL, NULL, NULL::int, NULL::int, NULL::int, made.fence,
    NULL::bigint, NULL::bigint, NULL::boolean, NULL::boolean,
    NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz,
    NULL::bytea, NULL::bytea, NULL, NULL::bytea, NULL, NULL, NULL::bytea, NULL::bytea
FROM made
UNION ALL
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = $1::bytea AND EXISTS (SELECT FROM clock)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, set_config('lock_timeout', wait.before, true), NULL, NULL, NULL, NULL, NULL
FROM wait
