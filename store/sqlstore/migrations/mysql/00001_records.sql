-- +goose Up
CREATE TABLE IF NOT EXISTS {prefix}meta (
    name  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    value VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
) ENGINE = InnoDB;

-- There is no index but the primary key, a digest of fixed length: one lock a call, and no collation, padding or length of
-- text decides what a key is. Sweeps walk by it. Texts are as sent, twice as wide as they may be, so that what is no text
-- fits in hex. Times are UTC.
CREATE TABLE IF NOT EXISTS {prefix}records (
    id               BINARY(32)   NOT NULL PRIMARY KEY,
    namespace        VARCHAR(520) NOT NULL,
    tenant           VARCHAR(520) NOT NULL,
    caller           VARCHAR(520) NOT NULL,
    operation        VARCHAR(140) NOT NULL,
    idempotency_key  VARCHAR(520) NOT NULL,
    status           VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PROCESSING',
    failure          VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    fingerprint      VARBINARY(64) NOT NULL,
    attempt          INT          NOT NULL DEFAULT 1,
    died             INT          NOT NULL DEFAULT 0,
    max_attempts     INT          NOT NULL,
    fence            BIGINT       NOT NULL,
    owner            BINARY(16)   NOT NULL,
    lease_us         BIGINT       NOT NULL,
    lease_until      DATETIME(6)  NULL,
    deadline_at      DATETIME(6)  NULL,
    on_lapse         VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    repeatable_until DATETIME(6)  NULL,
    retention_us     BIGINT       NOT NULL,
    result_codec     VARCHAR(520) NOT NULL DEFAULT '',
    result_meta      LONGBLOB     NULL,
    result           LONGBLOB     NULL,
    tombstone        TINYINT      NOT NULL DEFAULT 0,
    request          LONGBLOB     NULL,
    error            VARCHAR(2060) NOT NULL DEFAULT '',
    resolution       VARCHAR(2060) NOT NULL DEFAULT '',
    created_at       DATETIME(6)  NOT NULL,
    claimed_at       DATETIME(6)  NOT NULL,
    updated_at       DATETIME(6)  NOT NULL,
    completed_at     DATETIME(6)  NULL,
    expires_at       DATETIME(6)  NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO {prefix}meta (name, value) VALUES
    ('schema', '1'),
    ('store_id', REPLACE(UUID(), '-', '')),
    ('fence_floor', '0');

-- +goose Down
DROP TABLE {prefix}records;
DROP TABLE {prefix}meta;
