-- What is fetched instead of pushed: the web courier's notifications, the inbox, users' sessions.

-- SQLite changes no CHECK in place; a new column takes the place of the old one, so that columns
-- which others add to the table stay as they are.
ALTER TABLE device ADD COLUMN gatewayKind TEXT NOT NULL DEFAULT 'apns'
    CHECK (gatewayKind IN ('apns', 'courier'));
ALTER TABLE device DROP COLUMN gateway;
ALTER TABLE device RENAME COLUMN gatewayKind TO gateway;

CREATE INDEX deviceCourier ON device (token) WHERE gateway = 'courier' AND ended IS NULL;

-- The web courier.

CREATE TABLE courier (
    id INTEGER PRIMARY KEY,
    -- The device token: SHA-256 of the secret in the courier's URL, which nobody else has.
    token TEXT NOT NULL UNIQUE CHECK (token <> ''),
    createdAt INTEGER NOT NULL,
    polledAt INTEGER NOT NULL
) STRICT;

CREATE INDEX courierPolled ON courier (polledAt);

CREATE TABLE courierNotification (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    courier INTEGER NOT NULL REFERENCES courier (id) ON DELETE CASCADE,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    deliveryID BLOB NOT NULL UNIQUE CHECK (length(deliveryID) = 16),
    position INTEGER NOT NULL CHECK (position > 0),
    collapseID TEXT,
    -- A notification that was taken loses its payload. The row stays until the progress has passed
    -- it, so that what a crash repeats is not queued a second time.
    payload TEXT,
    queuedAt INTEGER NOT NULL,
    expiresAt INTEGER NOT NULL,
    takenAt INTEGER,
    FOREIGN KEY (owner, container) REFERENCES user (id, container),
    CHECK ((payload IS NULL) = (takenAt IS NOT NULL))
) STRICT;

CREATE INDEX courierWaiting ON courierNotification (courier, id) WHERE takenAt IS NULL;
CREATE INDEX courierExpiring ON courierNotification (expiresAt) WHERE takenAt IS NULL;
CREATE INDEX courierTaken ON courierNotification (position) WHERE takenAt IS NOT NULL;

-- The inbox: a user's notifications in the order in which something became of them. Marking one
-- read gives it the next number, so that every other device of the user sees it again, as read.

DROP TABLE notification;

CREATE TABLE inbox (
    owner INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    lastSequence INTEGER NOT NULL CHECK (lastSequence >= 0),
    -- Up to here notifications were dropped for their age or number.
    droppedSequence INTEGER NOT NULL DEFAULT 0 CHECK (droppedSequence BETWEEN 0 AND lastSequence),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE TABLE notification (
    owner INTEGER NOT NULL REFERENCES inbox (owner),
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    position INTEGER NOT NULL CHECK (position > 0),
    subscriptionSerial INTEGER NOT NULL,
    subscriptionID TEXT NOT NULL CHECK (subscriptionID <> ''),
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    notificationID BLOB NOT NULL CHECK (length(notificationID) = 16),
    originDevice TEXT,
    payload TEXT NOT NULL,
    createdAt INTEGER NOT NULL,
    changedAt INTEGER NOT NULL,
    readAt INTEGER,
    PRIMARY KEY (owner, sequence)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX notificationOnce ON notification (owner, position, subscriptionSerial);
CREATE INDEX notificationID ON notification (owner, notificationID);
CREATE INDEX notificationChanged ON notification (changedAt);

-- Users' sessions: a row says whether the tokens of a session count, the tokens say the rest.

CREATE TABLE sessionSecret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;

INSERT INTO sessionSecret (id, secret) VALUES (1, randomblob(32));

CREATE TABLE userSession (
    container INTEGER NOT NULL,
    id BLOB NOT NULL CHECK (length(id) = 16),
    owner INTEGER NOT NULL,
    startedAt INTEGER NOT NULL,
    endsAt INTEGER NOT NULL,
    revokedAt INTEGER,
    PRIMARY KEY (container, id),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT, WITHOUT ROWID;

CREATE INDEX userSessionOwner ON userSession (owner, startedAt);
CREATE INDEX userSessionEnds ON userSession (endsAt);

-- Minutes for which a session token is good, and days for which a session can be renewed; 0 keeps
-- no sessions.
ALTER TABLE container ADD COLUMN sessionMinutes INTEGER NOT NULL DEFAULT 1440
    CHECK (sessionMinutes >= 0);
ALTER TABLE container ADD COLUMN sessionDays INTEGER NOT NULL DEFAULT 14 CHECK (sessionDays >= 0);
