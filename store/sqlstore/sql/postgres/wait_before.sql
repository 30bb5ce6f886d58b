-- What it was before.
SELECT set_config('lock_timeout', current_setting('onceward.lock_timeout'), true)
