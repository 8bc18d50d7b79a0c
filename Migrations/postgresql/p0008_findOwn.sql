-- What waits for a courier is found by it whatever became of it: whoever ended one read all that there was for each.
CREATE INDEX courierNotificationCourier ON courierNotification (courier);
-- A user's live devices are found among no others: neither those that ended, nor the container's.
CREATE INDEX deviceActiveOwner ON device (owner, serial) WHERE ended IS NULL;
