-- +goose Up
CREATE TABLE {prefix}meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- A rowid table with a unique key: faster here than WITHOUT ROWID. There is no index on status, lease_until or
-- expires_at: it would cost every finish, and the sweep walks by rowid. Identity columns are NOT NULL: NULLs are
-- distinct in a unique index, and an absent tenant must equal only an absent tenant. The checks say OR: for IN with three
-- words SQLite makes a table of them at every write.
CREATE TABLE {prefix}records (
    nr               INTEGER PRIMARY KEY, -- the rowid, by a name, so that VACUUM keeps it under a sweep
    id               BLOB    NOT NULL UNIQUE CHECK (length(id) = 32),
    namespace        TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    caller           TEXT    NOT NULL,
    operation        TEXT    NOT NULL,
    idempotency_key  TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status = 'PROCESSING' OR status = 'SUCCESS' OR status = 'FAIL'),
    failure          TEXT    NOT NULL CHECK (failure = '' OR failure = 'RETRYABLE' OR failure = 'FINAL' OR failure = 'UNKNOWN'),
    fingerprint      BLOB    NOT NULL,
    attempt          INTEGER NOT NULL,
    died             INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    fence            INTEGER NOT NULL,
    owner            BLOB    NOT NULL,
    lease_us         INTEGER NOT NULL,
    lease_until      TEXT,
    deadline_at      TEXT,
    on_lapse         TEXT    NOT NULL CHECK (on_lapse = 'REPEAT' OR on_lapse = 'UNKNOWN'),
    repeatable_until TEXT,
    retention_us     INTEGER NOT NULL,
    result_codec     TEXT    NOT NULL,
    result_meta      BLOB,
    result           BLOB,
    tombstone        INTEGER NOT NULL,
    request          BLOB,
    error            TEXT    NOT NULL,
    resolution       TEXT    NOT NULL,
    created_at       TEXT    NOT NULL,
    claimed_at       TEXT    NOT NULL,
    updated_at       TEXT    NOT NULL,
    completed_at     TEXT,
    expires_at       TEXT
);

INSERT INTO {prefix}meta (name, value) VALUES
    ('schema', '1'),
    ('store_id', lower(hex(randomblob(16)))),
    ('fence_floor', '0');

-- +goose Down
DROP TABLE {prefix}records;
DROP TABLE {prefix}meta;
