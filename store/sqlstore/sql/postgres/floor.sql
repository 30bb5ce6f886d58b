-- Raises the fence floor, and never lowers it.
UPDATE {prefix}meta SET value = $1::text WHERE name = 'fence_floor' AND value::bigint < $2::bigint
