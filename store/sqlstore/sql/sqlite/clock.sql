-- The first statement of a writing transaction: the instant and the fence floor that all its decisions share. Nobody else
-- can write before its COMMIT, so nothing can come between them.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), CAST(value AS INTEGER)
FROM {prefix}meta WHERE name = 'fence_floor'
