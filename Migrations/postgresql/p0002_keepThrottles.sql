-- The pushes that a subscription's throttle has let go to a device, for as long as they count: so that
-- a restart gives no places anew (docs/kindness.md).
CREATE TABLE throttlePlace (
    container bigint NOT NULL REFERENCES container (id),
    -- As in digest: the user, "database/subscription" and the device.
    owner text COLLATE "C" NOT NULL,
    subscription text COLLATE "C" NOT NULL,
    device text COLLATE "C" NOT NULL,
    deliveryID bytea NOT NULL CHECK (length(deliveryID) = 16),
    takenAt bigint NOT NULL,
    -- From when on it counts no more.
    endsAt bigint NOT NULL,
    PRIMARY KEY (container, owner, subscription, device, deliveryID)
);

CREATE INDEX throttlePlaceEnds ON throttlePlace (endsAt);
