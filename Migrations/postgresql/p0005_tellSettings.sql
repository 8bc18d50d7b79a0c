-- The settings of a relay that all relays of a store should have alike, as a JSON object of texts by their names; NULL
-- of a relay that does not say, as one of an older version.
ALTER TABLE relayNode ADD COLUMN settings text COLLATE "C";
