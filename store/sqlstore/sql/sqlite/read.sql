-- A record by somebody who knows its identity, of which id is the digest. Inside BEGIN IMMEDIATE nobody else can write
-- between this read and the write that follows from it.
SELECT {fields}, result, request FROM {prefix}records WHERE id = ?
