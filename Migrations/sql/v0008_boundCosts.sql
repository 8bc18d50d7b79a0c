-- What conditions may add to a container's ordinary changes, as JSON; what is absent is as the
-- configuration of the relay says.
ALTER TABLE container ADD COLUMN costLimits TEXT;
