-- The pushes that a subscription's throttle has let go to a device, for as long as they count: so that
-- a restart gives no places anew (docs/kindness.md).
CREATE TABLE throttlePlace (
    container INTEGER NOT NULL REFERENCES container (id),
    -- As in digest: the user, "database/subscription" and the device.
    owner TEXT NOT NULL,
    subscription TEXT NOT NULL,
    device TEXT NOT NULL,
    deliveryID BLOB NOT NULL CHECK (length(deliveryID) = 16),
    takenAt INTEGER NOT NULL,
    -- From when on it counts no more.
    endsAt INTEGER NOT NULL,
    PRIMARY KEY (container, owner, subscription, device, deliveryID)
) STRICT, WITHOUT ROWID;

CREATE INDEX throttlePlaceEnds ON throttlePlace (endsAt);
