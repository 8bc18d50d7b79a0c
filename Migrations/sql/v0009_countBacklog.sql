-- Bounds are looked at every second, so what they bound is counted as it comes and goes; a check
-- compares the counts with the tables.

CREATE TABLE backlog (
    shard INTEGER PRIMARY KEY REFERENCES shardHead (shard),
    retries INTEGER NOT NULL,
    ranges INTEGER NOT NULL,
    rangeSubscriptions INTEGER NOT NULL,
    parkedBytes INTEGER NOT NULL
) STRICT;

INSERT INTO backlog (shard, retries, ranges, rangeSubscriptions, parkedBytes)
SELECT 0, (SELECT count(*) FROM retry), (SELECT count(*) FROM rangeTask),
    (SELECT coalesce(sum(subscriptions), 0) FROM rangeTask),
    (SELECT coalesce(sum(length(body) + length(headers)), 0) FROM parkedChange);

-- An upsert that finds its row fires no trigger of insertions; nothing here is written with
-- REPLACE, which would fire none of deletions.
CREATE TRIGGER retryWritten AFTER INSERT ON retry BEGIN
    UPDATE backlog SET retries = retries + 1;
END;
CREATE TRIGGER retryEnded AFTER DELETE ON retry BEGIN
    UPDATE backlog SET retries = retries - 1;
END;
CREATE TRIGGER rangeTaskWritten AFTER INSERT ON rangeTask BEGIN
    UPDATE backlog SET ranges = ranges + 1,
        rangeSubscriptions = rangeSubscriptions + new.subscriptions;
END;
CREATE TRIGGER rangeTaskEnded AFTER DELETE ON rangeTask BEGIN
    UPDATE backlog SET ranges = ranges - 1,
        rangeSubscriptions = rangeSubscriptions - old.subscriptions;
END;
CREATE TRIGGER parkedChangeWritten AFTER INSERT ON parkedChange BEGIN
    UPDATE backlog SET parkedBytes = parkedBytes + length(new.body) + length(new.headers);
END;
CREATE TRIGGER parkedChangeEnded AFTER DELETE ON parkedChange BEGIN
    UPDATE backlog SET parkedBytes = parkedBytes - length(old.body) - length(old.headers);
END;

CREATE INDEX parkedChangeReceived ON parkedChange (receivedAt);
CREATE INDEX quarantineMoment ON quarantine (quarantinedAt);

-- Ranges that cannot be worked, with the reason, so that they hold nothing up.
CREATE TABLE quarantinedRange (
    id INTEGER PRIMARY KEY,
    container INTEGER NOT NULL REFERENCES container (id),
    position INTEGER NOT NULL CHECK (position > 0),
    subscriptions INTEGER NOT NULL,
    serials BLOB NOT NULL,
    "offset" INTEGER NOT NULL,
    reason TEXT NOT NULL,
    quarantinedAt INTEGER NOT NULL
) STRICT;

CREATE INDEX quarantinedRangeMoment ON quarantinedRange (quarantinedAt);

-- Of the accepted attempts so many came before there were accounts.
ALTER TABLE progress ADD COLUMN acceptedBefore INTEGER NOT NULL DEFAULT 0;
UPDATE progress SET acceptedBefore = accepted - (SELECT coalesce(sum(delivered), 0) FROM account);
