-- How subscriptions fare, and what clients say of their notifications.

-- What steps of settling passed, in compact form, until it is added up. A block commits with the
-- progress, so that nothing is counted twice or missed (docs/decisions/0074).
CREATE TABLE firingBlock (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- How many firings, errors and ends there are.
    count INTEGER NOT NULL CHECK (count > 0),
    body BLOB NOT NULL
) STRICT;

-- The sums, of subscriptions of which there is anything to say.
CREATE TABLE subscriptionHealth (
    serial INTEGER PRIMARY KEY CHECK (serial > 0),
    fired INTEGER NOT NULL DEFAULT 0 CHECK (fired >= 0),
    firedPosition INTEGER,
    firedAt INTEGER,
    -- Firings by which nothing was owed to any device, by why.
    noDevice INTEGER NOT NULL DEFAULT 0 CHECK (noDevice >= 0),
    origin INTEGER NOT NULL DEFAULT 0 CHECK (origin >= 0),
    merged INTEGER NOT NULL DEFAULT 0 CHECK (merged >= 0),
    unreachedReason INTEGER,
    unreachedPosition INTEGER,
    unreachedAt INTEGER,
    -- Deliveries that ended without success.
    undelivered INTEGER NOT NULL DEFAULT 0 CHECK (undelivered >= 0),
    undeliveredReason TEXT,
    undeliveredPosition INTEGER,
    undeliveredAt INTEGER,
    -- Evaluation errors of its condition.
    errors INTEGER NOT NULL DEFAULT 0 CHECK (errors >= 0),
    errorPosition INTEGER,
    errorAt INTEGER
) STRICT;

-- They go with their subscription; those of one that was disabled stay until it is saved anew.
CREATE INDEX disabledSubscriptionSerial ON disabledSubscription (serial);

CREATE TRIGGER subscriptionHealthEnds AFTER DELETE ON subscription BEGIN
    DELETE FROM subscriptionHealth WHERE serial = OLD.serial AND NOT EXISTS (
        SELECT 1 FROM disabledSubscription WHERE disabledSubscription.serial = OLD.serial);
END;

CREATE TRIGGER disabledHealthEnds AFTER DELETE ON disabledSubscription BEGIN
    DELETE FROM subscriptionHealth WHERE serial = OLD.serial;
END;

-- What a user's clients said of a notification: that it came, that it was opened.
CREATE TABLE clientReceipt (
    owner INTEGER NOT NULL REFERENCES user (id),
    position INTEGER NOT NULL CHECK (position > 0),
    -- The device that said it; empty where it did not say which it is.
    deviceID TEXT NOT NULL,
    -- Whose push it was; 0 where the notification was named, which all pushes of a change share.
    subscriptionSerial INTEGER NOT NULL CHECK (subscriptionSerial >= 0),
    deliveredAt INTEGER NOT NULL,
    openedAt INTEGER,
    markedAt INTEGER NOT NULL,
    PRIMARY KEY (owner, position, deviceID, subscriptionSerial)
) STRICT, WITHOUT ROWID;

CREATE INDEX clientReceiptMarked ON clientReceipt (markedAt);
