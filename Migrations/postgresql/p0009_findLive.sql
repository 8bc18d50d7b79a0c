-- The records that a zone has are found among no marks of deleted ones, which may be millions: whoever deletes a zone
-- has the writer look for the next ones again and again.
CREATE INDEX shadowRecordLive ON shadowRecord (container, database, owner, zoneOwner, zoneName)
    WHERE isKept = 1 AND isDeleted = 0;
