-- Deliveries that were not pushed, because their device was told of the change over its connection
-- (docs/kindness.md).
ALTER TABLE account ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
