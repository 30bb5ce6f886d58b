-- No claim of a missing record may begin at this fence or below. Read in the transaction that inserts.
SELECT CAST(value AS INTEGER) FROM {prefix}meta WHERE name = 'fence_floor'
