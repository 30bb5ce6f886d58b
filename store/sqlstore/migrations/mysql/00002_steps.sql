-- +goose Up
-- The steps of a record's work stand in its row, as JSON: one write both remembers a step and proves the claim.
-- MySQL commits each statement by itself. MariaDB runs all of this again after a crash in between; on MySQL 8, which knows no IF
-- NOT EXISTS here, drop the column steps before the next try.
ALTER TABLE {prefix}records ADD COLUMN /*M! IF NOT EXISTS */ steps LONGTEXT NULL;

UPDATE {prefix}meta SET value = '2' WHERE name = 'schema';

-- +goose Down
ALTER TABLE {prefix}records DROP COLUMN steps;

UPDATE {prefix}meta SET value = '1' WHERE name = 'schema';
