-- A container's sessions are listed from the newest without a look at all that it has, which may be as many as it has
-- users.
CREATE INDEX userSessionStarted ON userSession (container, startedAt DESC, id);
