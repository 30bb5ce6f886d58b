-- Whose database it is. The lock, of a row that never changes, keeps the read from being the one that the
-- transaction's snapshot is taken at.
SELECT value FROM {prefix}meta WHERE name = 'store_id' LOCK IN SHARE MODE
