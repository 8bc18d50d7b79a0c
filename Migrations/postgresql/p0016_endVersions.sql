-- As v0034 of the files: finds the versions of records that are not kept, which are pruned by their date.
CREATE INDEX shadowRecordVersion ON shadowRecord (modifiedAt) WHERE isKept = 0 AND isDeleted = 0;
