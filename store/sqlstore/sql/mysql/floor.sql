-- Raises the fence floor, and never lowers it.
UPDATE {prefix}meta SET value = ? WHERE name = 'fence_floor' AND CAST(value AS SIGNED) < ?
