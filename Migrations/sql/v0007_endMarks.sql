-- Marks of deleted records have an end (docs/storage.md).

-- Up to where marks of this zone may be gone: a token from before cannot be told what was deleted.
ALTER TABLE recordZone ADD COLUMN prunedTo INTEGER NOT NULL DEFAULT 0 CHECK (prunedTo >= 0);

CREATE INDEX shadowRecordMark ON shadowRecord (modifiedAt) WHERE isDeleted = 1;
