-- What was active stays known for as long as the log has changes that were judged by it, so that
-- whoever asks why is told (docs/explain.md). Pruning moves here what has ended; what would be a
-- secret, a device's token, stays behind.

CREATE TABLE pastSubscription (
    serial INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    subscriptionID TEXT NOT NULL CHECK (subscriptionID <> ''),
    body TEXT NOT NULL,
    activation INTEGER NOT NULL CHECK (activation > 0),
    ended INTEGER NOT NULL CHECK (ended > activation),
    -- The change that a once subscription was claimed for.
    claimed INTEGER,
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE INDEX pastSubscriptionID ON pastSubscription (owner, database, subscriptionID, serial);
CREATE INDEX pastSubscriptionEnded ON pastSubscription (ended);

CREATE TABLE pastDevice (
    serial INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    deviceID TEXT NOT NULL CHECK (deviceID <> ''),
    gateway TEXT NOT NULL CHECK (gateway IN ('apns', 'courier')),
    gatewayEnvironment TEXT NOT NULL CHECK (gatewayEnvironment IN ('development', 'production')),
    topic TEXT,
    registeredAt INTEGER NOT NULL,
    activation INTEGER NOT NULL CHECK (activation > 0),
    ended INTEGER NOT NULL CHECK (ended > activation),
    FOREIGN KEY (owner, container) REFERENCES user (id, container)
) STRICT;

CREATE INDEX pastDeviceOwner ON pastDevice (owner, serial);
CREATE INDEX pastDeviceEnded ON pastDevice (ended);

-- What ended up to here was forgotten before this step.
ALTER TABLE progress ADD COLUMN pastFrom INTEGER NOT NULL DEFAULT 0;
UPDATE progress SET pastFrom = endedPrunedTo;

-- What has ended and was not moved yet, by its name.
CREATE INDEX subscriptionPastID ON subscription (owner, database, subscriptionID)
    WHERE ended IS NOT NULL;

-- The receipts of one change are found without a look at every block.
CREATE INDEX receiptBlockPositions ON receiptBlock (lastPosition, firstPosition, outcomes);
