-- A transaction's own lock wait for one statement, in milliseconds.
SELECT set_config('onceward.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', $1::text, true)
