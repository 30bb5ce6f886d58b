-- What it was before.
SET innodb_lock_wait_timeout = @onceward_wait
