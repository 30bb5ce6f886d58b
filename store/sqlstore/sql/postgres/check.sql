-- Whether statements commit by themselves, and whether nothing can be written.
SELECT true, pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', false
