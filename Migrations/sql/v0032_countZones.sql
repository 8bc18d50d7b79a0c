-- Each user has a default zone from their first private record on, which nobody makes, and nobody is refused. It is not
-- counted: a container with as many users as it may have zones could have no other.
DROP TRIGGER zoneCounted;
DROP TRIGGER zoneDropped;
CREATE TRIGGER zoneCounted AFTER INSERT ON recordZone
WHEN new.zoneName <> '_defaultZone' OR new.zoneOwner <> '' BEGIN
    INSERT INTO quotaUse VALUES
        (new.container, 4, '', 1, 0),
        (new.container, 4, new.database || '/' || new.owner, 1, 0)
    ON CONFLICT DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER zoneDropped AFTER DELETE ON recordZone
WHEN old.zoneName <> '_defaultZone' OR old.zoneOwner <> '' BEGIN
    UPDATE quotaUse SET number = number - 1
    WHERE container = old.container AND thing = 4
        AND holder IN ('', old.database || '/' || old.owner);
END;
DELETE FROM quotaUse WHERE thing = 4;
INSERT INTO quotaUse
SELECT container, 4, '', count(*), 0 FROM recordZone
WHERE zoneName <> '_defaultZone' OR zoneOwner <> '' GROUP BY container;
INSERT INTO quotaUse
SELECT container, 4, database || '/' || owner, count(*), 0 FROM recordZone
WHERE zoneName <> '_defaultZone' OR zoneOwner <> '' GROUP BY container, database, owner;
