-- Marks of deleted zones go as those of deleted records do.

-- When the zone was deleted; NULL of one that is there, and of a mark from before this step until
-- it is looked at.
ALTER TABLE recordZone ADD COLUMN deletedAt INTEGER;

CREATE INDEX recordZoneDeleted ON recordZone (deletedAt) WHERE isDeleted = 1;

-- What is remembered of marks that are gone, by database: a token from before cannot be told which
-- zones were deleted, and a zone that comes again not which records it had.
CREATE TABLE zoneMemory (
    container INTEGER NOT NULL REFERENCES container (id),
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    owner TEXT NOT NULL,
    -- The highest number of a deletion whose mark is gone: no later one may have it again.
    prunedEdit INTEGER NOT NULL CHECK (prunedEdit > 0),
    -- The last change of a record in any of these zones.
    prunedPosition INTEGER NOT NULL CHECK (prunedPosition >= 0),
    PRIMARY KEY (container, database, owner)
) STRICT, WITHOUT ROWID;

CREATE INDEX zoneMemoryEdit ON zoneMemory (prunedEdit);
