-- Finds the versions of records that are not kept, which are pruned by the date of their last change (docs/storage.md).
-- Rows from before have no date until upkeep first sees them.
CREATE INDEX shadowRecordVersion ON shadowRecord (modifiedAt) WHERE isKept = 0 AND isDeleted = 0;
