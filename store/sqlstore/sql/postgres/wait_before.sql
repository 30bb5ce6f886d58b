-- What it was before; where the transaction is gone, and with it what was set, what it is.
SELECT set_config('lock_timeout', coalesce(nullif(current_setting('onceward.lock_timeout', true), ''), current_setting('lock_timeout')), true)
