-- A session is known until it has ended, and until the token of which it began has, which may be years later: whoever
-- looks each minute for what is over is not to read all that have ended by themselves.
CREATE INDEX userSessionOver ON userSession (greatest(endsAt, coalesce(tokenEndsAt, 0)));
DROP INDEX userSessionEnds;
