-- The clock, and the fence below which no claim of a missing record may begin, and whose clock it is.
SELECT clock_timestamp(), f.value::bigint, i.value
FROM {prefix}meta f, {prefix}meta i WHERE f.name = 'fence_floor' AND i.name = 'store_id'
