-- Counts the changes of read grants. A client that comes back is told what happened since its position, by the grants of
-- today, so it must begin anew if the grants have changed since.
ALTER TABLE container ADD COLUMN readGeneration INTEGER NOT NULL DEFAULT 0 CHECK (readGeneration >= 0);
