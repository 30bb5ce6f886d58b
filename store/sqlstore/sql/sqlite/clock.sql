-- The clock, and the fence below which no claim of a missing record may begin. Asked in the transaction that inserts.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), CAST(f.value AS INTEGER)
FROM {prefix}meta f WHERE f.name = 'fence_floor'
