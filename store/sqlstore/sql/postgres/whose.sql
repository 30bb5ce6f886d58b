-- Whose database it is.
SELECT value FROM {prefix}meta WHERE name = 'store_id'
