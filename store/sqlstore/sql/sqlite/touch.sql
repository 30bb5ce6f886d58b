-- Changes nothing, and is rolled back; only who can write can run it. BEGIN IMMEDIATE alone is fine on a read-only file.
UPDATE {prefix}meta SET value = value WHERE name = 'schema'
