-- The clock, and the fence below which no claim of a missing record may begin, and whose clock it is.
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), CAST(f.value AS SIGNED), i.value
FROM {prefix}meta f, {prefix}meta i WHERE f.name = 'fence_floor' AND i.name = 'store_id'
