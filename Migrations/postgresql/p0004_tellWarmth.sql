-- How far a relay that stands by has the store's state: 'loading' or 'warm'. NULL of one that keeps none, and of the
-- owner.
ALTER TABLE relayNode ADD COLUMN standby text COLLATE "C" CHECK (standby IN ('loading', 'warm'));
