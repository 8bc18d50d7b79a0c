-- What upkeep needs: accounts of deliveries, ranges of huge fan-outs, entries that cannot be read,
-- and the digest by which a parked change is known again.

-- For each container: owed = delivered + rows of retry + rows of deadLetter + dropped.
-- What was settled before this step is not counted, except what is still kept.
CREATE TABLE account (
    container INTEGER PRIMARY KEY REFERENCES container (id),
    owed INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    dropped INTEGER NOT NULL
) STRICT;

INSERT INTO account (container, owed, delivered, dropped)
SELECT id,
    (SELECT count(*) FROM retry WHERE retry.container = container.id)
        + (SELECT count(*) FROM deadLetter WHERE deadLetter.container = container.id),
    0, 0
FROM container;

-- A range holds some of the subscriptions that a change fires, beside the progress: all that the
-- progress has passed is settled or lies here. No row was ever written to the earlier form.
DROP TABLE rangeTask;

CREATE TABLE rangeTask (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL REFERENCES container (id),
    position INTEGER NOT NULL REFERENCES logEntry (position),
    subscriptions INTEGER NOT NULL CHECK (subscriptions > 0),
    -- Ascending serials as differences, seven bits per byte, the lowest first.
    serials BLOB NOT NULL,
    -- So many deliveries of the range are settled.
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0)
) STRICT;

CREATE INDEX rangeTaskPosition ON rangeTask (position);
CREATE INDEX rangeTaskContainer ON rangeTask (container, id);

-- Changes of the log that could not be read, with the reason.
CREATE TABLE quarantine (
    position INTEGER PRIMARY KEY CHECK (position > 0),
    container INTEGER NOT NULL REFERENCES container (id),
    reason TEXT NOT NULL,
    body TEXT NOT NULL,
    quarantinedAt INTEGER NOT NULL
) STRICT;

ALTER TABLE parkedChange ADD COLUMN digest BLOB;

CREATE UNIQUE INDEX parkedChangeDigest
    ON parkedChange (container, source, digest) WHERE digest IS NOT NULL;
