-- Where other relays reach the one that owns the store, and by what they are let in: with the lease,
-- so that whoever may read it may ask the owner. NULL of an owner that is not to be asked.
ALTER TABLE ownership ADD COLUMN address text COLLATE "C";
ALTER TABLE ownership ADD COLUMN pass text COLLATE "C";
