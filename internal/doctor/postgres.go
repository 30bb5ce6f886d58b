package doctor

func postgres() []check {
	return []check{
		{"version", "SELECT current_setting('server_version_num')", func(found string) Finding {
			if len(found) < 6 || found < "140000" {
				return Finding{Level: Risky, Cost: "sweeps walk the table by place, which PostgreSQL before 14 does by reading all of it", Cure: "upgrade to 14 or newer"}
			}
			return Finding{Level: Fine}
		}},
		{"role", "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END",
			when(these("standby"), Wrong, "a standby can't be written", "give the URL of the primary")},
		{"default_transaction_read_only", "SELECT current_setting('default_transaction_read_only')",
			when(these("on"), Wrong, "nothing can be written", "ALTER ROLE … SET default_transaction_read_only = off")},
		{"fsync", "SELECT current_setting('fsync')",
			when(these("off"), Wrong, lostOnCrash, "fsync = on")},
		{"full_page_writes", "SELECT current_setting('full_page_writes')",
			when(these("off"), Risky, lostOnCrash, "full_page_writes = on, unless the file system never tears a page")},
		{"synchronous_commit", "SELECT current_setting('synchronous_commit')",
			when(these("off"), Wrong, lostClaims, "ALTER ROLE … SET synchronous_commit = on")},
		{"standbys", "SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_stat_replication) THEN 'none' WHEN current_setting('synchronous_standby_names') = '' THEN 'asynchronous' ELSE 'synchronous' END",
			when(these("asynchronous"), Worth, "a failover to a standby that lags loses the last claims: their work may run twice", "synchronous_standby_names, or hold the traffic back for as long as the lag was")},
		{"isolation", "SELECT current_setting('default_transaction_isolation')",
			unless(these("read committed"), Worth, "more transactions are begun anew under load; every statement is right under any level", "")},
		{"encoding", "SELECT current_setting('server_encoding')",
			unless(these("UTF8"), Risky, "keys, scopes and error texts outside the encoding are refused", "a database with ENCODING 'UTF8'")},
		{"statement_timeout", "SELECT CASE WHEN setting::bigint BETWEEN 1 AND 999 THEN setting || ' ms' ELSE 'none, or a second and more' END FROM pg_settings WHERE name = 'statement_timeout'",
			unless(these("none, or a second and more"), Risky, "a busy moment is taken for a store that is down", "ALTER ROLE … SET statement_timeout = '5s'")},
		{"idle_in_transaction_session_timeout", "SELECT CASE WHEN setting::bigint = 0 THEN 'none' ELSE setting || ' ms' END FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
			when(these("none"), Worth, "a client that hangs in a transaction of the transaction kind holds its key for ever", "set it above the longest work")},
		{"connections", "SELECT CASE WHEN current_setting('max_connections')::int - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') < 20 THEN 'few left' ELSE 'enough left' END",
			when(these("few left"), Risky, "the next process can't connect: every call of it is refused", "max_connections, or a pooler in transaction mode")},
		{"old transactions", "SELECT CASE WHEN EXISTS (SELECT FROM pg_stat_activity WHERE xact_start < now() - interval '10 minutes' AND pid <> pg_backend_pid()) THEN 'longer than 10 minutes' ELSE 'none' END",
			when(these("longer than 10 minutes"), Risky, "vacuum can't clean what they might see: the tables grow and every claim slows down", "find them in pg_stat_activity")},
	}
}
