package doctor

func mysql() []check {
	return []check{
		{"version", "SELECT @@version", func(string) Finding { return Finding{Level: Fine} }},
		{"role", "SELECT IF(@@global.read_only, 'read-only', 'writable')",
			when(these("read-only"), Wrong, "nothing can be written, or only by administrators: a replica perhaps", "give the URL of the primary")},
		{"autocommit", "SELECT IF(@@autocommit, 'on', 'off')",
			when(these("off"), Wrong, "the store refuses to open: claims would never be committed", "take autocommit=0 out of the URL and of init_connect")},
		{"innodb_flush_log_at_trx_commit", "SELECT @@innodb_flush_log_at_trx_commit",
			unless(these("1"), Wrong, lostClaims, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")},
		{"sync_binlog", "SELECT IF(@@log_bin AND @@sync_binlog <> 1, CONCAT('binlog on, sync_binlog ', @@sync_binlog), 'ok')",
			unless(these("ok"), Risky, "after a crash replicas and primary can differ: a failover then loses claims", "SET GLOBAL sync_binlog = 1")},
		{"innodb_doublewrite", "SELECT @@innodb_doublewrite",
			when(these("0", "OFF"), Risky, lostOnCrash, "innodb_doublewrite = ON, unless the file system never tears a page")},
		{"isolation", "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')", func(found string) Finding {
			if found == "SERIALIZABLE" {
				return Finding{Level: Worth, Cost: "transactions of the transaction kind wait for each other more often", Cure: "READ COMMITTED for the work's handle"}
			}
			return Finding{Level: Fine}
		}},
		{"innodb_rollback_on_timeout", "SELECT IF(@@innodb_rollback_on_timeout, 'on', 'off')", func(string) Finding { return Finding{Level: Fine} }},
		{"innodb_lock_wait_timeout", "SELECT IF(@@innodb_lock_wait_timeout > 60, 'more than a minute', 'a minute or less')",
			when(these("more than a minute"), Worth, "work in a transaction waits that long for another's locks, and holds its key and connection", "SET GLOBAL innodb_lock_wait_timeout = 10")},
		{"max_allowed_packet", "SELECT IF(@@max_allowed_packet < 4194304, 'less than 4 MiB', '4 MiB or more')",
			when(these("less than 4 MiB"), Risky, "a result or request near the limit can't be stored: its outcome is not recorded", "SET GLOBAL max_allowed_packet = 16777216")},
		{"connections", "SELECT IF(@@max_connections - (SELECT COUNT(*) FROM information_schema.processlist) < 20, 'few left', 'enough left')",
			when(these("few left"), Risky, "the next process can't connect: every call of it is refused", "max_connections")},
		{"galera", "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'",
			when(these("ON"), Worth, "two nodes may both accept a claim until certification: write to one node only", "a router that sends all writes to one node")},
	}
}
