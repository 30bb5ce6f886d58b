-- +goose Up
-- The steps of a record's work stand in its row, as JSON: one write both remembers a step and proves the claim.
ALTER TABLE {prefix}records ADD COLUMN steps TEXT;

UPDATE {prefix}meta SET value = '2' WHERE name = 'schema';

-- +goose Down
ALTER TABLE {prefix}records DROP COLUMN steps;

UPDATE {prefix}meta SET value = '1' WHERE name = 'schema';
