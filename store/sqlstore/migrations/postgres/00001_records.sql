-- +goose Up
CREATE TABLE {prefix}meta (
    name  text NOT NULL PRIMARY KEY,
    value text NOT NULL
);

-- There is no index on status, lease_until, expires_at or anything else that a finish changes: with the room that
-- fillfactor leaves, its new version stays on its page and no index is touched. Sweeps walk the table by place. Identity
-- columns are NOT NULL: NULLs are distinct in a unique index, and an absent tenant must equal only an absent tenant. There are no
-- checks: PostgreSQL compiles each of them anew for every insert and update, which costs a claim a sixth of its time.
CREATE TABLE {prefix}records (
    id               bytea       NOT NULL PRIMARY KEY,
    namespace        text        NOT NULL,
    tenant           text        NOT NULL,
    caller           text        NOT NULL,
    operation        text        NOT NULL,
    idempotency_key  text        NOT NULL,
    status           text        NOT NULL DEFAULT 'PROCESSING',
    failure          text        NOT NULL DEFAULT '',
    fingerprint      bytea       NOT NULL,
    attempt          int         NOT NULL DEFAULT 1,
    died             int         NOT NULL DEFAULT 0,
    max_attempts     int         NOT NULL,
    fence            bigint      NOT NULL,
    owner            bytea       NOT NULL,
    lease_us         bigint      NOT NULL,
    lease_until      timestamptz,
    deadline_at      timestamptz,
    on_lapse         text        NOT NULL,
    repeatable_until timestamptz,
    retention_us     bigint      NOT NULL,
    result_codec     text        NOT NULL DEFAULT '',
    result_meta      bytea,
    result           bytea,
    tombstone        boolean     NOT NULL DEFAULT false,
    request          bytea,
    error            text        NOT NULL DEFAULT '',
    resolution       text        NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    completed_at     timestamptz,
    expires_at       timestamptz
) WITH (fillfactor = 70);

INSERT INTO {prefix}meta (name, value) VALUES
    ('schema', '1'),
    ('store_id', replace(gen_random_uuid()::text, '-', '')),
    ('fence_floor', '0');

-- +goose Down
DROP TABLE {prefix}records;
DROP TABLE {prefix}meta;
