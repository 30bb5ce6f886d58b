-- The clock, and the fence below which no claim of a missing record may begin. Asked in the transaction that inserts.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), CAST(value AS INTEGER)
FROM {prefix}meta WHERE name = 'fence_floor'
