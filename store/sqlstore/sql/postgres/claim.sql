-- Claims a missing record or reads the one that is there, in one round trip. The primary key decides: ON CONFLICT DO NOTHING
-- waits for whoever is inserting the same id and inserts nothing if that commits. A record that is there is read from the
-- snapshot, without a lock and without a byte of WAL; NOT EXISTS only spares it the making of a row. No row at all means that
-- it was committed after the snapshot: ask again, never take it for "in progress". A claim that finds its fence at or below
-- the floor of what was purged begins above it.
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
    FROM (SELECT clock_timestamp() AS now) c
    WHERE NOT EXISTS (SELECT FROM {prefix}records x WHERE x.id = $1::bytea)
    ON CONFLICT (id) DO NOTHING
    RETURNING created_at, fence
)
SELECT made.created_at, 'INSERTED', NULL, NULL, NULL::int, NULL::int, NULL::int, made.fence,
    NULL::bigint, NULL::bigint, NULL::boolean, NULL::boolean,
    NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz,
    NULL::bytea, NULL::bytea, NULL, NULL::bytea, NULL, NULL, NULL, NULL::bytea, NULL::bytea
FROM made
UNION ALL
SELECT {fields}, r.result, r.request FROM {prefix}records r WHERE r.id = $1::bytea
