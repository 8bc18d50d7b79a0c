-- A lane is what one answer of the gateway can concern together: a container's deliveries by one of
-- the gateway's environments for one topic. A lane that is held is not read at all, and lanes take
-- turns.

ALTER TABLE retry ADD COLUMN lane TEXT NOT NULL DEFAULT '';

-- 1 if a newer delivery of the same record replaces this one before it is sent.
ALTER TABLE retry ADD COLUMN collapses INTEGER NOT NULL DEFAULT 0 CHECK (collapses IN (0, 1));

UPDATE retry SET lane =
    json_extract(body, '$.gatewayEnvironment') || ' ' || json_extract(body, '$.topic');

DROP INDEX retryDue;
CREATE INDEX retryLaneDue ON retry (container, lane, dueAt);
CREATE INDEX retryCollapses ON retry (position) WHERE collapses = 1;

-- A badge is that of a device in the hands of one user; nobody inherits another's.

CREATE TABLE ownedBadge (
    container INTEGER NOT NULL,
    deviceID TEXT NOT NULL CHECK (deviceID <> ''),
    owner INTEGER NOT NULL,
    badge INTEGER NOT NULL CHECK (badge >= 0),
    PRIMARY KEY (container, deviceID),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT, WITHOUT ROWID;

INSERT INTO ownedBadge (container, deviceID, owner, badge)
SELECT badge.container, badge.deviceID, device.owner, badge.badge
FROM badge JOIN device ON device.container = badge.container
    AND device.deviceID = badge.deviceID AND device.ended IS NULL;

DROP TABLE badge;
ALTER TABLE ownedBadge RENAME TO badge;

-- A client certificate for the gateway instead of a signing key, as JSON.

ALTER TABLE container ADD COLUMN certificate TEXT CHECK (certificate IS NULL OR teamID IS NULL);
