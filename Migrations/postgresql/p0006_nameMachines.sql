-- The machine on which a relay runs, and the stores that it spreads over machines together with other relays: their
-- schemas in order, divided by commas. NULL of a relay that does not say, as one of an older version; stores also of one
-- that moves nothing.
ALTER TABLE relayNode ADD COLUMN machine text COLLATE "C";
ALTER TABLE relayNode ADD COLUMN stores text COLLATE "C";
