-- Whether statements commit by themselves, and whether nothing can be written.
SELECT @@autocommit, @@global.read_only
