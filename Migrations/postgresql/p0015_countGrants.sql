-- As v0033 of the files: counts the changes of read grants.
ALTER TABLE container ADD COLUMN readGeneration bigint NOT NULL DEFAULT 0 CHECK (readGeneration >= 0);
