SELECT CAST(value AS INTEGER) FROM {prefix}meta WHERE name = 'fence_floor'
