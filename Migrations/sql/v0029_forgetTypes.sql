-- Record types that are kept no more and of which there may still be records: those are shown to nobody, and go some at
-- a time.
CREATE TABLE forgottenType (
    container INTEGER NOT NULL REFERENCES container (id),
    recordType TEXT NOT NULL,
    -- The head of the log once it was said: what syncs from before it begins anew.
    position INTEGER NOT NULL,
    -- The key of the record that was looked at last; empty at first.
    database TEXT NOT NULL,
    owner TEXT NOT NULL,
    zoneOwner TEXT NOT NULL,
    zoneName TEXT NOT NULL,
    lastType TEXT NOT NULL,
    lastName TEXT NOT NULL,
    PRIMARY KEY (container, recordType)
) STRICT, WITHOUT ROWID;
