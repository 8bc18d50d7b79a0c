-- The schema of Belfry (docs/storage.md). Moments are nanoseconds since 1970; positions are places
-- in the shard's log; an ended version is active below the position in "ended".
-- JSON is not checked here: with trusted_schema off, SQLite 3.40 takes no JSON function in a CHECK.

CREATE TABLE store (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    identity BLOB NOT NULL CHECK (length(identity) = 16)
) STRICT;

INSERT INTO store (id, identity) VALUES (1, randomblob(16));

-- Who may do what.

CREATE TABLE container (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    environment TEXT NOT NULL CHECK (environment IN ('development', 'production')),
    topics TEXT NOT NULL,
    teamID TEXT,
    keyID TEXT,
    privateKeyPEM TEXT,
    userTokens TEXT,
    expirationSeconds INTEGER NOT NULL CHECK (expirationSeconds >= 0),
    keepsInbox INTEGER NOT NULL DEFAULT 0 CHECK (keepsInbox IN (0, 1)),
    savedAt INTEGER NOT NULL,
    UNIQUE (name, environment),
    CHECK ((teamID IS NULL) = (keyID IS NULL) AND (keyID IS NULL) = (privateKeyPEM IS NULL))
) STRICT;

CREATE TABLE accessKey (
    container INTEGER NOT NULL REFERENCES container (id),
    id TEXT NOT NULL CHECK (id <> ''),
    kind TEXT NOT NULL CHECK (kind IN ('apiToken', 'serverToServer', 'bearer')),
    verifier TEXT NOT NULL CHECK (verifier <> ''),
    label TEXT NOT NULL,
    createdAt INTEGER NOT NULL,
    revokedAt INTEGER,
    PRIMARY KEY (container, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE changeSource (
    container INTEGER NOT NULL REFERENCES container (id),
    name TEXT NOT NULL CHECK (name <> ''),
    definition TEXT NOT NULL,
    savedAt INTEGER NOT NULL,
    PRIMARY KEY (container, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE user (
    id INTEGER PRIMARY KEY,
    container INTEGER NOT NULL REFERENCES container (id),
    name TEXT NOT NULL CHECK (name <> ''),
    UNIQUE (container, name),
    UNIQUE (id, container)
) STRICT;

-- Who wants to be told: versions, which begin and end at positions.

CREATE TABLE device (
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    deviceID TEXT NOT NULL CHECK (deviceID <> ''),
    gateway TEXT NOT NULL CHECK (gateway IN ('apns')),
    gatewayEnvironment TEXT NOT NULL CHECK (gatewayEnvironment IN ('development', 'production')),
    token TEXT NOT NULL CHECK (token <> ''),
    topic TEXT,
    registeredAt INTEGER NOT NULL,
    activation INTEGER NOT NULL CHECK (activation > 0),
    ended INTEGER CHECK (ended > activation),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE UNIQUE INDEX deviceActiveID ON device (container, deviceID) WHERE ended IS NULL;
CREATE UNIQUE INDEX deviceActiveToken ON device (container, token) WHERE ended IS NULL;
CREATE INDEX deviceOwner ON device (owner, serial);
CREATE INDEX deviceEnded ON device (ended) WHERE ended IS NOT NULL;

CREATE TABLE badge (
    container INTEGER NOT NULL REFERENCES container (id),
    deviceID TEXT NOT NULL CHECK (deviceID <> ''),
    badge INTEGER NOT NULL CHECK (badge >= 0),
    PRIMARY KEY (container, deviceID)
) STRICT, WITHOUT ROWID;

CREATE TABLE subscription (
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    subscriptionID TEXT NOT NULL CHECK (subscriptionID <> ''),
    -- SHA-256 of what makes two subscriptions the same wish; the notification info is not part.
    contentDigest BLOB NOT NULL CHECK (length(contentDigest) = 32),
    firesOnce INTEGER NOT NULL CHECK (firesOnce IN (0, 1)),
    body TEXT NOT NULL,
    activation INTEGER NOT NULL CHECK (activation > 0),
    ended INTEGER CHECK (ended > activation),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE UNIQUE INDEX subscriptionActiveID
    ON subscription (owner, database, subscriptionID) WHERE ended IS NULL;
CREATE UNIQUE INDEX subscriptionActiveContent
    ON subscription (owner, database, contentDigest) WHERE ended IS NULL;
CREATE INDEX subscriptionEnded ON subscription (ended) WHERE ended IS NOT NULL;

CREATE TABLE onceClaim (
    subscription INTEGER PRIMARY KEY REFERENCES subscription (serial) ON DELETE CASCADE,
    position INTEGER NOT NULL CHECK (position > 0)
) STRICT;

-- The log. One file holds one shard, so that a position is a rowid.

CREATE TABLE shardHead (
    shard INTEGER PRIMARY KEY CHECK (shard = 0),
    position INTEGER NOT NULL CHECK (position >= 0)
) STRICT;

INSERT INTO shardHead (shard, position) VALUES (0, 0);

CREATE TABLE logEntry (
    position INTEGER PRIMARY KEY CHECK (position > 0),
    container INTEGER NOT NULL REFERENCES container (id),
    appendedAt INTEGER NOT NULL,
    -- 1 change, 2 subscription saved, 3 subscription deleted, 4 device saved, 5 devices ended
    kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 5),
    source TEXT CHECK ((source IS NOT NULL) = (kind = 1)),
    isStale INTEGER NOT NULL DEFAULT 0 CHECK (isStale IN (0, 1) AND (isStale = 0 OR kind = 1)),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE dedupe (
    container INTEGER NOT NULL REFERENCES container (id),
    source TEXT NOT NULL,
    -- 1 source position, 2 delivery of the sender, 3 content, 4 expression of the mapping
    kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),
    key BLOB NOT NULL,
    digest BLOB NOT NULL,
    position INTEGER NOT NULL CHECK (position > 0),
    rememberedUntil INTEGER NOT NULL,
    PRIMARY KEY (container, source, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX dedupeRememberedUntil ON dedupe (rememberedUntil);

CREATE TABLE shadowRecord (
    container INTEGER NOT NULL REFERENCES container (id),
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    -- Empty where there is none: a key has no NULL.
    owner TEXT NOT NULL,
    zoneOwner TEXT NOT NULL,
    zoneName TEXT NOT NULL,
    recordType TEXT NOT NULL,
    recordName TEXT NOT NULL,
    source TEXT NOT NULL,
    version INTEGER,
    position INTEGER NOT NULL CHECK (position > 0),
    fields TEXT,
    PRIMARY KEY (container, database, owner, zoneOwner, zoneName, recordType, recordName)
) STRICT, WITHOUT ROWID;

CREATE TABLE parkedChange (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL REFERENCES container (id),
    source TEXT NOT NULL,
    reason TEXT NOT NULL,
    path TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    receivedAt INTEGER NOT NULL
) STRICT;

CREATE INDEX parkedChangeContainer ON parkedChange (container, number);

-- The progress, and the exceptions.

CREATE TABLE progress (
    shard INTEGER PRIMARY KEY REFERENCES shardHead (shard),
    position INTEGER NOT NULL CHECK (position >= 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    accepted INTEGER NOT NULL DEFAULT 0,
    deferred INTEGER NOT NULL DEFAULT 0,
    unregistered INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO progress (shard, position, "offset", epoch) VALUES (0, 0, 0, 0);

CREATE TABLE receiptBlock (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    firstPosition INTEGER NOT NULL,
    lastPosition INTEGER NOT NULL CHECK (lastPosition >= firstPosition),
    lastAt INTEGER NOT NULL,
    -- Bit n is set if the block has a receipt with outcome n.
    outcomes INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count > 0),
    body BLOB NOT NULL
) STRICT;

CREATE TABLE retry (
    deliveryID BLOB PRIMARY KEY CHECK (length(deliveryID) = 16),
    container INTEGER NOT NULL REFERENCES container (id),
    position INTEGER NOT NULL CHECK (position > 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    subscriptionSerial INTEGER NOT NULL,
    deviceSerial INTEGER NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    dueAt INTEGER NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX retryDue ON retry (dueAt);
CREATE INDEX retryContainerDue ON retry (container, dueAt);

CREATE TABLE deadLetter (
    deliveryID BLOB PRIMARY KEY CHECK (length(deliveryID) = 16),
    container INTEGER NOT NULL REFERENCES container (id),
    position INTEGER NOT NULL CHECK (position > 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    subscriptionSerial INTEGER NOT NULL,
    deviceSerial INTEGER NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 999),
    reason TEXT NOT NULL,
    endedAt INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX deadLetterContainer ON deadLetter (container, endedAt);

CREATE TABLE rangeTask (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL REFERENCES container (id),
    position INTEGER NOT NULL REFERENCES logEntry (position),
    -- Subscriptions with serials in (nextSerial, lastSerial] are still owed.
    nextSerial INTEGER NOT NULL CHECK (nextSerial >= 0),
    lastSerial INTEGER NOT NULL CHECK (lastSerial >= nextSerial),
    nextOffset INTEGER NOT NULL CHECK (nextOffset >= 0)
) STRICT;

CREATE INDEX rangeTaskPosition ON rangeTask (position);

CREATE TABLE notification (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position > 0),
    subscriptionID TEXT NOT NULL,
    payload TEXT NOT NULL,
    createdAt INTEGER NOT NULL,
    readAt INTEGER,
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE INDEX notificationOwner ON notification (owner, id);

CREATE TABLE providerToken (
    teamID TEXT NOT NULL CHECK (teamID <> ''),
    keyID TEXT NOT NULL CHECK (keyID <> ''),
    environment TEXT NOT NULL CHECK (environment IN ('development', 'production')),
    token TEXT NOT NULL CHECK (token <> ''),
    issuedAt INTEGER NOT NULL,
    PRIMARY KEY (teamID, keyID, environment)
) STRICT, WITHOUT ROWID;
