-- How many blocks the table has: a walk by place ends there.
SELECT pg_relation_size('{prefix}records'::regclass) / current_setting('block_size')::bigint
