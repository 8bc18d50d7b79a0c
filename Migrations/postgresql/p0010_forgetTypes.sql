-- Record types that are kept no more and of which there may still be records: those are shown to nobody, and go some at
-- a time.
CREATE TABLE forgottenType (
    container bigint NOT NULL REFERENCES container (id),
    recordType text COLLATE "C" NOT NULL,
    -- The head of the log once it was said: what syncs from before it begins anew.
    position bigint NOT NULL,
    -- The key of the record that was looked at last; empty at first.
    database text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    zoneOwner text COLLATE "C" NOT NULL,
    zoneName text COLLATE "C" NOT NULL,
    lastType text COLLATE "C" NOT NULL,
    lastName text COLLATE "C" NOT NULL,
    PRIMARY KEY (container, recordType)
);
