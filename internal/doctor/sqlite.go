package doctor

func sqlite() []check {
	return []check{
		{"version", "SELECT sqlite_version()", func(string) Finding { return Finding{Level: Fine} }},
		{"journal_mode", "PRAGMA journal_mode",
			unless(these("wal"), Wrong, "the store refuses to open: readers and the writer would wait for each other", "PRAGMA journal_mode = wal")},
		{"integrity", "PRAGMA quick_check(1)",
			unless(these("ok"), Wrong, "the file is damaged: records may be lost or wrong", "restore a backup, and look for what wrote to the file without SQLite, or for a network file system")},
		{"foreign tables", "SELECT CASE WHEN count(*) > 40 THEN 'many' ELSE 'few or none' END FROM sqlite_schema WHERE type = 'table'",
			when(these("many"), Worth, "whoever writes to the same file holds its one write lock: claims wait for it", "give the store a file of its own")},
	}
}
