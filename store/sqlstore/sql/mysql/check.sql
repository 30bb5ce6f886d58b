-- Whether statements commit by themselves, and whether nothing can be written, and whether the server is MariaDB.
SELECT @@autocommit, @@global.read_only, @@version LIKE '%MariaDB%'
