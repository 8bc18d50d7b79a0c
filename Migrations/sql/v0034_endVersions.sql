-- The version of a record that is not kept has a moment, and an end (docs/storage.md). One from before begins to age
-- when it is first looked at.
CREATE INDEX shadowRecordVersion ON shadowRecord (modifiedAt) WHERE isKept = 0 AND isDeleted = 0;
