-- A transaction's own lock wait for one statement, in seconds.
SET @onceward_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = CAST(? AS SIGNED)
