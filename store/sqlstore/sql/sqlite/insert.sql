-- Makes a record of a first attempt. The unique key decides whether there is no row: one row affected is a record made,
-- none is somebody else's record, or a fence floor that has reached the fence.
INSERT INTO {prefix}records (
    id, namespace, tenant, caller, operation, idempotency_key, fingerprint, max_attempts, owner,
    lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, request, fence,
    created_at, claimed_at, updated_at, attempt, died,
    status, failure, result_codec, tombstone, error, resolution
) SELECT
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
    ?18, ?18, ?18, 1, 0,
    'PROCESSING', '', '', 0, '', ''
WHERE (SELECT CAST(value AS INTEGER) FROM {prefix}meta WHERE name = 'fence_floor') < ?19
ON CONFLICT (id) DO NOTHING
