-- The clock, and the fence below which no claim of a missing record may begin.
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), CAST(f.value AS SIGNED)
FROM {prefix}meta f WHERE f.name = 'fence_floor'
