-- Records in the shadow, their zones, and the schema (docs/storage.md).

-- A row of v0001 knows the last version of a record and nothing else; a kept one knows the record.
ALTER TABLE shadowRecord ADD COLUMN isKept INTEGER NOT NULL DEFAULT 0 CHECK (isKept IN (0, 1));
-- A deleted record stays as a mark, so that whoever asks for what changed is told.
ALTER TABLE shadowRecord ADD COLUMN isDeleted INTEGER NOT NULL DEFAULT 0
    CHECK (isDeleted IN (0, 1));
-- 1 if fields are missing that the source never sent.
ALTER TABLE shadowRecord ADD COLUMN isPartial INTEGER NOT NULL DEFAULT 0
    CHECK (isPartial IN (0, 1));
-- What CloudKit's dictionaries say beyond the values: actions of references, altitudes, assets.
ALTER TABLE shadowRecord ADD COLUMN wire TEXT;
-- The record in the same zone with which this one is deleted (a reference with DELETE_SELF).
ALTER TABLE shadowRecord ADD COLUMN deletedWith TEXT;
ALTER TABLE shadowRecord ADD COLUMN readers TEXT;
ALTER TABLE shadowRecord ADD COLUMN createdAt INTEGER;
ALTER TABLE shadowRecord ADD COLUMN createdBy TEXT;
ALTER TABLE shadowRecord ADD COLUMN createdDevice TEXT;
ALTER TABLE shadowRecord ADD COLUMN modifiedAt INTEGER;
ALTER TABLE shadowRecord ADD COLUMN modifiedBy TEXT;
ALTER TABLE shadowRecord ADD COLUMN modifiedDevice TEXT;

CREATE INDEX shadowRecordName
    ON shadowRecord (container, database, owner, zoneOwner, zoneName, recordName)
    WHERE isKept = 1;
CREATE INDEX shadowRecordPosition
    ON shadowRecord (container, database, owner, zoneOwner, zoneName, position)
    WHERE isKept = 1;
CREATE INDEX shadowRecordDeletedWith
    ON shadowRecord (container, database, owner, zoneOwner, zoneName, deletedWith)
    WHERE deletedWith IS NOT NULL;

CREATE TABLE recordZone (
    container INTEGER NOT NULL REFERENCES container (id),
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    owner TEXT NOT NULL,
    zoneOwner TEXT NOT NULL,
    zoneName TEXT NOT NULL,
    -- The last change in it; 0 if there was none.
    position INTEGER NOT NULL DEFAULT 0 CHECK (position >= 0),
    -- Creations and deletions of zones are not in the log, and have an order of their own.
    edit INTEGER NOT NULL CHECK (edit > 0),
    isDeleted INTEGER NOT NULL DEFAULT 0 CHECK (isDeleted IN (0, 1)),
    PRIMARY KEY (container, database, owner, zoneOwner, zoneName)
) STRICT, WITHOUT ROWID;

CREATE INDEX recordZoneEdit ON recordZone (edit);

CREATE TABLE recordType (
    container INTEGER NOT NULL REFERENCES container (id),
    name TEXT NOT NULL CHECK (name <> ''),
    isKept INTEGER NOT NULL CHECK (isKept IN (0, 1)),
    isInferred INTEGER NOT NULL CHECK (isInferred IN (0, 1)),
    grants TEXT NOT NULL,
    PRIMARY KEY (container, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE recordField (
    container INTEGER NOT NULL,
    recordType TEXT NOT NULL,
    name TEXT NOT NULL CHECK (name <> ''),
    type TEXT NOT NULL,
    -- 1 queryable, 2 sortable, 4 searchable
    uses INTEGER NOT NULL CHECK (uses BETWEEN 0 AND 7),
    isEncrypted INTEGER NOT NULL CHECK (isEncrypted IN (0, 1)),
    PRIMARY KEY (container, recordType, name),
    FOREIGN KEY (container, recordType) REFERENCES recordType (container, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE schemaRole (
    container INTEGER NOT NULL REFERENCES container (id),
    name TEXT NOT NULL CHECK (name <> ''),
    PRIMARY KEY (container, name)
) STRICT, WITHOUT ROWID;
