-- What quotas are about is counted as it comes and goes, and decided in the transaction that writes;
-- a check compares the counts with the tables.

-- Quotas of a container as JSON; what is absent is as the configuration of the relay says.
ALTER TABLE container ADD COLUMN quotas TEXT;

CREATE TABLE quotaUse (
    container INTEGER NOT NULL REFERENCES container (id),
    -- 1 active subscriptions, 2 active devices, 3 kept records (marks of deleted ones count as bytes
    -- only), 4 zones, 5 changes whose record was not kept
    thing INTEGER NOT NULL CHECK (thing BETWEEN 1 AND 5),
    -- Empty for the whole container; else the number of a user, for records the name of one, for
    -- zones a database and its owner.
    holder TEXT NOT NULL,
    number INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (container, thing, holder)
) STRICT, WITHOUT ROWID;

-- Whose a record is: the owner's of its database, else of who created it here. What a source posted
-- is the container's.
CREATE VIEW recordHolding AS
SELECT container, recordName, isKept, isDeleted,
    CASE WHEN source <> '_cloudkit' THEN '' WHEN owner <> '' THEN owner
        ELSE coalesce(createdBy, '') END AS holder,
    256 + coalesce(length(CAST(fields AS BLOB)), 0) + coalesce(length(CAST(wire AS BLOB)), 0)
        AS bytes
FROM shadowRecord WHERE isKept = 1;

INSERT INTO quotaUse
SELECT container, 1, '', count(*), sum(length(CAST(body AS BLOB))) FROM subscription
WHERE ended IS NULL GROUP BY container;
INSERT INTO quotaUse
SELECT container, 1, CAST(owner AS TEXT), count(*), sum(length(CAST(body AS BLOB)))
FROM subscription WHERE ended IS NULL GROUP BY container, owner;
INSERT INTO quotaUse
SELECT container, 2, '', count(*), 0 FROM device WHERE ended IS NULL GROUP BY container;
INSERT INTO quotaUse
SELECT container, 2, CAST(owner AS TEXT), count(*), 0 FROM device WHERE ended IS NULL
GROUP BY container, owner;
INSERT INTO quotaUse
SELECT container, 3, '', sum(1 - isDeleted), sum(bytes) FROM recordHolding GROUP BY container;
INSERT INTO quotaUse
SELECT container, 3, holder, sum(1 - isDeleted), sum(bytes) FROM recordHolding
WHERE holder <> '' GROUP BY container, holder;
INSERT INTO quotaUse
SELECT container, 4, '', count(*), 0 FROM recordZone GROUP BY container;
INSERT INTO quotaUse
SELECT container, 4, database || '/' || owner, count(*), 0 FROM recordZone
GROUP BY container, database, owner;

CREATE TRIGGER subscriptionCounted AFTER INSERT ON subscription WHEN new.ended IS NULL BEGIN
    INSERT INTO quotaUse VALUES
        (new.container, 1, '', 1, length(CAST(new.body AS BLOB))),
        (new.container, 1, CAST(new.owner AS TEXT), 1, length(CAST(new.body AS BLOB)))
    ON CONFLICT DO UPDATE SET number = number + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER subscriptionUncounted AFTER UPDATE OF ended ON subscription
WHEN old.ended IS NULL AND new.ended IS NOT NULL BEGIN
    UPDATE quotaUse SET number = number - 1, bytes = bytes - length(CAST(old.body AS BLOB))
    WHERE container = old.container AND thing = 1
        AND holder IN ('', CAST(old.owner AS TEXT));
END;
CREATE TRIGGER subscriptionDropped AFTER DELETE ON subscription WHEN old.ended IS NULL BEGIN
    UPDATE quotaUse SET number = number - 1, bytes = bytes - length(CAST(old.body AS BLOB))
    WHERE container = old.container AND thing = 1
        AND holder IN ('', CAST(old.owner AS TEXT));
END;

CREATE TRIGGER deviceCounted AFTER INSERT ON device WHEN new.ended IS NULL BEGIN
    INSERT INTO quotaUse VALUES
        (new.container, 2, '', 1, 0), (new.container, 2, CAST(new.owner AS TEXT), 1, 0)
    ON CONFLICT DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER deviceUncounted AFTER UPDATE OF ended ON device
WHEN old.ended IS NULL AND new.ended IS NOT NULL BEGIN
    UPDATE quotaUse SET number = number - 1
    WHERE container = old.container AND thing = 2
        AND holder IN ('', CAST(old.owner AS TEXT));
END;
CREATE TRIGGER deviceDropped AFTER DELETE ON device WHEN old.ended IS NULL BEGIN
    UPDATE quotaUse SET number = number - 1
    WHERE container = old.container AND thing = 2
        AND holder IN ('', CAST(old.owner AS TEXT));
END;

-- A version that a source's change notes and whose record is not kept is not counted.
CREATE TRIGGER recordCounted AFTER INSERT ON shadowRecord WHEN new.isKept = 1 BEGIN
    INSERT INTO quotaUse
    SELECT new.container, 3, column1, 1 - new.isDeleted,
        256 + coalesce(length(CAST(new.fields AS BLOB)), 0)
            + coalesce(length(CAST(new.wire AS BLOB)), 0)
    FROM (VALUES (''), (CASE WHEN new.source <> '_cloudkit' THEN NULL
        WHEN new.owner <> '' THEN new.owner ELSE nullif(new.createdBy, '') END))
    WHERE column1 IS NOT NULL
    ON CONFLICT DO UPDATE SET number = number + excluded.number, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER recordDropped AFTER DELETE ON shadowRecord WHEN old.isKept = 1 BEGIN
    UPDATE quotaUse SET number = number - (1 - old.isDeleted),
        bytes = bytes - (256 + coalesce(length(CAST(old.fields AS BLOB)), 0)
            + coalesce(length(CAST(old.wire AS BLOB)), 0))
    WHERE container = old.container AND thing = 3 AND holder IN ('',
        CASE WHEN old.source <> '_cloudkit' THEN '' WHEN old.owner <> '' THEN old.owner
            ELSE coalesce(old.createdBy, '') END);
END;
CREATE TRIGGER recordRecounted
AFTER UPDATE OF isKept, isDeleted, fields, wire, source, createdBy ON shadowRecord
WHEN old.isKept = 1 OR new.isKept = 1 BEGIN
    UPDATE quotaUse SET number = number - old.isKept * (1 - old.isDeleted),
        bytes = bytes - old.isKept * (256 + coalesce(length(CAST(old.fields AS BLOB)), 0)
            + coalesce(length(CAST(old.wire AS BLOB)), 0))
    WHERE container = old.container AND thing = 3 AND holder IN ('',
        CASE WHEN old.source <> '_cloudkit' THEN '' WHEN old.owner <> '' THEN old.owner
            ELSE coalesce(old.createdBy, '') END);
    INSERT INTO quotaUse
    SELECT new.container, 3, column1, new.isKept * (1 - new.isDeleted),
        new.isKept * (256 + coalesce(length(CAST(new.fields AS BLOB)), 0)
            + coalesce(length(CAST(new.wire AS BLOB)), 0))
    FROM (VALUES (''), (CASE WHEN new.source <> '_cloudkit' THEN NULL
        WHEN new.owner <> '' THEN new.owner ELSE nullif(new.createdBy, '') END))
    WHERE column1 IS NOT NULL
    ON CONFLICT DO UPDATE SET number = number + excluded.number, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER zoneCounted AFTER INSERT ON recordZone BEGIN
    INSERT INTO quotaUse VALUES
        (new.container, 4, '', 1, 0),
        (new.container, 4, new.database || '/' || new.owner, 1, 0)
    ON CONFLICT DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER zoneDropped AFTER DELETE ON recordZone BEGIN
    UPDATE quotaUse SET number = number - 1
    WHERE container = old.container AND thing = 4
        AND holder IN ('', old.database || '/' || old.owner);
END;
