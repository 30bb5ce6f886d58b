-- The clock, and the fence below which no claim of a missing record may begin.
SELECT clock_timestamp(), value::bigint FROM {prefix}meta WHERE name = 'fence_floor'
