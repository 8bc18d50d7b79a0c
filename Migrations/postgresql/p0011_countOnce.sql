-- A record that changes is counted once, by the difference, and not at all where nothing that is counted changes: each
-- count that a transaction makes walks over those that it made before. The function alone is another, and counts the
-- same, so that a relay of an older version goes on beside a newer one, and no table is locked.
CREATE OR REPLACE FUNCTION countRecord() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held text := '';
    holds text := '';
    less bigint := 0;
    lessBytes bigint := 0;
    more bigint := 0;
    moreBytes bigint := 0;
    wasCounted boolean := false;
    isCounted boolean := false;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        wasCounted := old.isKept = 1;
        held := CASE WHEN old.source <> '_cloudkit' THEN '' WHEN old.owner <> '' THEN old.owner
            ELSE coalesce(old.createdBy, '') END;
        less := 1 - old.isDeleted;
        lessBytes :=
            256 + coalesce(octet_length(old.fields), 0) + coalesce(octet_length(old.wire), 0);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        isCounted := new.isKept = 1;
        holds := CASE WHEN new.source <> '_cloudkit' THEN '' WHEN new.owner <> '' THEN new.owner
            ELSE coalesce(new.createdBy, '') END;
        more := 1 - new.isDeleted;
        moreBytes :=
            256 + coalesce(octet_length(new.fields), 0) + coalesce(octet_length(new.wire), 0);
    END IF;
    IF wasCounted AND isCounted AND held = holds THEN
        IF more <> less OR moreBytes <> lessBytes THEN
            UPDATE quotaUse SET number = number + more - less, bytes = bytes + moreBytes - lessBytes
            WHERE container = new.container AND thing = 3 AND holder IN ('', held);
        END IF;
        RETURN NULL;
    END IF;
    IF wasCounted THEN
        UPDATE quotaUse SET number = number - less, bytes = bytes - lessBytes
        WHERE container = old.container AND thing = 3 AND holder IN ('', held);
    END IF;
    IF isCounted THEN
        INSERT INTO quotaUse (container, thing, holder, number, bytes)
        SELECT new.container, 3, place, more, moreBytes
        FROM (SELECT '' AS place UNION SELECT holds) AS places
        ON CONFLICT (container, thing, holder) DO UPDATE
        SET number = quotaUse.number + excluded.number, bytes = quotaUse.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$;
