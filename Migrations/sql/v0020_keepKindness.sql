-- Whoever is told may say how they want to be spared: deliveries are held back, each as a retry, and
-- beyond a number for a subscription and a device together, in a digest (docs/kindness.md).

-- What may hold a subscription's or a device's pushes back, as JSON; NULL where nothing does.
ALTER TABLE subscription ADD COLUMN kindness TEXT;
ALTER TABLE device ADD COLUMN kindness TEXT;

-- From when on a subscription does not fire; it is deleted later.
ALTER TABLE subscription ADD COLUMN expiresAt INTEGER;
CREATE INDEX subscriptionExpires ON subscription (expiresAt)
    WHERE expiresAt IS NOT NULL AND ended IS NULL;

-- For whose sake a retry is held back: the user, "database/subscription" and the device; NULL where
-- it waits for something else.
ALTER TABLE retry ADD COLUMN heldOwner TEXT;
ALTER TABLE retry ADD COLUMN heldSubscription TEXT;
ALTER TABLE retry ADD COLUMN heldDevice TEXT;
CREATE INDEX retryHeld ON retry (container, heldOwner, heldSubscription, heldDevice, reason)
    WHERE heldOwner IS NOT NULL;

-- What a subscription owes a device and is told together: how many, and the newest of them. The
-- other deliveries have no row. Once it is closed its delivery is a retry, and this says which.
CREATE TABLE digest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL REFERENCES container (id),
    owner TEXT NOT NULL,
    subscription TEXT NOT NULL,
    device TEXT NOT NULL,
    reason TEXT NOT NULL,
    openedAt INTEGER NOT NULL,
    dueAt INTEGER NOT NULL,
    decidedAt INTEGER NOT NULL,
    closedAt INTEGER,
    -- The deliveries whose only place it is, and what those stand for.
    deliveries INTEGER NOT NULL CHECK (deliveries > 0),
    count INTEGER NOT NULL CHECK (count >= deliveries),
    deliveryID BLOB NOT NULL CHECK (length(deliveryID) = 16),
    position INTEGER NOT NULL CHECK (position > 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    subscriptionSerial INTEGER NOT NULL,
    deviceSerial INTEGER NOT NULL,
    -- The newest delivery; empty once the digest is closed.
    body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX digestOpen ON digest (container, owner, subscription, device)
    WHERE closedAt IS NULL;
CREATE INDEX digestDue ON digest (dueAt) WHERE closedAt IS NULL;
CREATE INDEX digestDecided ON digest (decidedAt) WHERE closedAt IS NULL;
CREATE INDEX digestClosed ON digest (closedAt) WHERE closedAt IS NOT NULL;
CREATE INDEX digestPast ON digest (container, owner, subscription, device, closedAt)
    WHERE closedAt IS NOT NULL;

-- Deliveries that were told together with others, by the delivery of one of them.
ALTER TABLE account ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
