-- The clock, and the fence below which no claim of a missing record may begin.
SELECT clock_timestamp(), f.value::bigint
FROM {prefix}meta f WHERE f.name = 'fence_floor'
