-- Changes whose conditions took too many steps are set aside. So often it was this subscription's.
CREATE TABLE dearStrike (
    subscription INTEGER NOT NULL REFERENCES subscription (serial) ON DELETE CASCADE,
    position INTEGER NOT NULL CHECK (position > 0),
    PRIMARY KEY (subscription, position)
) STRICT, WITHOUT ROWID;

-- Subscriptions that were ended by that, until they are saved anew or deleted.
CREATE TABLE disabledSubscription (
    owner INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    database TEXT NOT NULL CHECK (database IN ('public', 'private', 'shared')),
    subscriptionID TEXT NOT NULL CHECK (subscriptionID <> ''),
    serial INTEGER NOT NULL CHECK (serial > 0),
    body TEXT NOT NULL,
    activation INTEGER NOT NULL CHECK (activation > 0),
    reason TEXT NOT NULL,
    -- The entry of the log that ended it.
    position INTEGER NOT NULL CHECK (position > activation),
    PRIMARY KEY (owner, database, subscriptionID)
) STRICT, WITHOUT ROWID;
