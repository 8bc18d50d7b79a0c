-- A device's ID belongs to the user who has it: another user may have a device of the same name,
-- and neither can end the other's. A token still has one live owner in its container.

DROP INDEX deviceActiveID;
CREATE UNIQUE INDEX deviceActiveID ON device (container, deviceID, owner) WHERE ended IS NULL;

CREATE TABLE userBadge (
    container INTEGER NOT NULL,
    deviceID TEXT NOT NULL CHECK (deviceID <> ''),
    owner INTEGER NOT NULL,
    badge INTEGER NOT NULL CHECK (badge >= 0),
    PRIMARY KEY (container, deviceID, owner),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT, WITHOUT ROWID;

INSERT INTO userBadge (container, deviceID, owner, badge)
SELECT container, deviceID, owner, badge FROM badge;

DROP TABLE badge;
ALTER TABLE userBadge RENAME TO badge;

-- A session that was revoked is remembered for as long as the token from which it began is good.
ALTER TABLE userSession ADD COLUMN tokenEndsAt INTEGER;

-- Server-to-server signatures by which something was changed: none counts twice.
CREATE TABLE usedSignature (
    container INTEGER NOT NULL REFERENCES container (id),
    nonce BLOB NOT NULL CHECK (length(nonce) = 32),
    rememberedUntil INTEGER NOT NULL,
    PRIMARY KEY (container, nonce)
) STRICT, WITHOUT ROWID;

CREATE INDEX usedSignatureUntil ON usedSignature (rememberedUntil);
