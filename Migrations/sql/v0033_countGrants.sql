-- How often it was changed who may read the records of some type: clients that come back are told what happened since,
-- and not who might see it meanwhile. So they begin anew where the number is another one.
ALTER TABLE container ADD COLUMN readGeneration INTEGER NOT NULL DEFAULT 0 CHECK (readGeneration >= 0);
