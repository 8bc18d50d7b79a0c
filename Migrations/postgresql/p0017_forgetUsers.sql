-- As v0035 of the files: finds what belongs to a user, so that users whom nothing refers to can be deleted.
CREATE INDEX subscriptionOwner ON subscription (owner);
CREATE INDEX badgeOwner ON badge (owner);
CREATE INDEX courierNotificationOwner ON courierNotification (owner);
