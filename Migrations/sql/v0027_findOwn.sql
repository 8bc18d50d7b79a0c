-- What was queued for a courier is found by it whatever became of it: whoever ended one read all that there was for
-- each. What waits is found by it too, as by courierWaiting, and so the index has the columns for that.
CREATE INDEX courierNotificationCourier ON courierNotification (courier, takenAt, id);
-- A user's live devices are found among no others: neither those that ended, nor the container's.
CREATE INDEX deviceActiveOwner ON device (owner, serial) WHERE ended IS NULL;
