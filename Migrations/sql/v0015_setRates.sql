-- How often the keys and users of a container may come, as JSON; what is absent is as the configuration
-- of the relay says.
ALTER TABLE container ADD COLUMN rates TEXT;
