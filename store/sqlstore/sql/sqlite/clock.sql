-- The clock, and the fence below which no claim of a missing record may begin, and whose clock it is. Asked in the transaction that inserts.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), CAST(f.value AS INTEGER), i.value
FROM {prefix}meta f, {prefix}meta i WHERE f.name = 'fence_floor' AND i.name = 'store_id'
