-- How far versions that have ended were pruned: a snapshot of an earlier position could not be
-- brought up to date any more, and what ended since would go on firing. How far it was before this
-- step is not known, so that the first start after it loads from the registry.

ALTER TABLE progress ADD COLUMN endedPrunedTo INTEGER NOT NULL DEFAULT 0;
UPDATE progress SET endedPrunedTo = position;
DELETE FROM stateSnapshot;

CREATE TRIGGER stateSnapshotInserted BEFORE INSERT ON stateSnapshot
WHEN new.position < (SELECT endedPrunedTo FROM progress WHERE shard = new.shard) BEGIN
    SELECT RAISE(ABORT, 'versions that ended after the snapshot are pruned');
END;
CREATE TRIGGER stateSnapshotMoved BEFORE UPDATE ON stateSnapshot
WHEN new.position < (SELECT endedPrunedTo FROM progress WHERE shard = new.shard) BEGIN
    SELECT RAISE(ABORT, 'versions that ended after the snapshot are pruned');
END;

-- By the clock at which moment the wait of a retry was decided: if that moment is still to come, the
-- clock was set back since, and the wait begins anew. Of old rows only the longest wait is known.

ALTER TABLE retry ADD COLUMN decidedAt INTEGER NOT NULL DEFAULT 0;
UPDATE retry SET decidedAt = dueAt - 95040000000000;
CREATE INDEX retryDecided ON retry (decidedAt);

-- How many commits were acknowledged, which the witness beside the file knows too, and whether there
-- is a witness (docs/storage.md).

ALTER TABLE shardHead ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE store ADD COLUMN isWitnessed INTEGER NOT NULL DEFAULT 0 CHECK (isWitnessed IN (0, 1));
