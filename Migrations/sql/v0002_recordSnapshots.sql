-- The snapshot of the follower's state that the store vouches for (docs/snapshots.md). A file with
-- another identity is old or foreign. Versions that ended after its position are kept, so that the
-- registry can say what has changed since.

CREATE TABLE stateSnapshot (
    shard INTEGER PRIMARY KEY CHECK (shard = 0),
    identity BLOB NOT NULL CHECK (length(identity) = 16),
    position INTEGER NOT NULL CHECK (position >= 0),
    savedAt INTEGER NOT NULL
) STRICT;
