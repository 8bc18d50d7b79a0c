-- Lists for an operator, the newest first: what they are narrowed by is found by an index, and not by
-- looking at everything that there is (decision 83).

-- The records of changes. Within a type the entries are in the order of the log, so that an entry is
-- added at the end of a page that is in memory; the name comes last, so that the entries of one record
-- are found in the index alone.
ALTER TABLE logEntry ADD COLUMN recordType TEXT;
ALTER TABLE logEntry ADD COLUMN recordName TEXT;
UPDATE logEntry SET recordType = json_extract(body, '$.type'), recordName = json_extract(body, '$.name')
    WHERE kind = 1 AND json_valid(body);
CREATE INDEX logEntryRecord ON logEntry (container, recordType, position, recordName) WHERE kind = 1;

-- Whose deliveries wait or are dead.
ALTER TABLE retry ADD COLUMN owner TEXT;
UPDATE retry SET owner = json_extract(body, '$.owner') WHERE json_valid(body);
CREATE INDEX retryPosition ON retry (container, position, deliveryID);
CREATE INDEX retryOwner ON retry (container, owner, position, deliveryID);

ALTER TABLE deadLetter ADD COLUMN owner TEXT;
UPDATE deadLetter SET owner = json_extract(body, '$.owner') WHERE json_valid(body);
CREATE INDEX deadLetterPosition ON deadLetter (container, position);
CREATE INDEX deadLetterOwner ON deadLetter (container, owner, endedAt, deliveryID);
CREATE INDEX deadLetterReason ON deadLetter (container, reason, endedAt, deliveryID);

-- What is active, by container.
ALTER TABLE subscription ADD COLUMN recordType TEXT;
UPDATE subscription
    SET recordType = coalesce(json_extract(body, '$.query.recordType'), json_extract(body, '$.recordType'))
    WHERE json_valid(body);
CREATE INDEX subscriptionListed ON subscription (container, serial) WHERE ended IS NULL;
CREATE INDEX subscriptionType ON subscription (container, recordType, serial) WHERE ended IS NULL;
CREATE INDEX deviceListed ON device (container, serial) WHERE ended IS NULL;

CREATE INDEX parkedChangeSource ON parkedChange (container, source, number);
