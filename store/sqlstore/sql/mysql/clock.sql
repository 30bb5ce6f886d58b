-- The clock, and the fence below which no claim of a missing record may begin.
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), CAST(value AS SIGNED) FROM {prefix}meta WHERE name = 'fence_floor'
