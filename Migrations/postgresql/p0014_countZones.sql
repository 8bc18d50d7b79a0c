-- Each user has a default zone from their first private record on, which nobody makes, and nobody is refused. It is not
-- counted: a container with as many users as it may have zones could have no other. Nobody makes a zone meanwhile.
LOCK TABLE recordZone IN SHARE ROW EXCLUSIVE MODE;
CREATE OR REPLACE FUNCTION countZone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF new.zoneName <> '_defaultZone' OR new.zoneOwner <> '' THEN
            PERFORM addToQuota(new.container, 4, '', 1, 0);
            PERFORM addToQuota(new.container, 4, new.database || '/' || new.owner, 1, 0);
        END IF;
    ELSIF old.zoneName <> '_defaultZone' OR old.zoneOwner <> '' THEN
        PERFORM takeFromQuota(old.container, 4, old.database || '/' || old.owner, 1, 0);
    END IF;
    RETURN NULL;
END $$;
DELETE FROM quotaUse WHERE thing = 4;
INSERT INTO quotaUse (container, thing, holder, number, bytes)
SELECT container, 4, '', count(*), 0 FROM recordZone
WHERE zoneName <> '_defaultZone' OR zoneOwner <> '' GROUP BY container;
INSERT INTO quotaUse (container, thing, holder, number, bytes)
SELECT container, 4, database || '/' || owner, count(*), 0 FROM recordZone
WHERE zoneName <> '_defaultZone' OR zoneOwner <> '' GROUP BY container, database, owner;
