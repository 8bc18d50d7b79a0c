-- Secrets at rest, the operator's tokens, and what was done with them (docs/security.md).

-- Which key the secrets of this store are encrypted with. Without a row they lie there as they are.
-- The proof is a known text, encrypted: a key that opens it is the right one.
CREATE TABLE secretSeal (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    keyID TEXT NOT NULL CHECK (keyID <> ''),
    proof TEXT NOT NULL
) STRICT;

-- An encrypted secret is longer than the 32 bytes that it holds.
CREATE TABLE sealedSessionSecret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL CHECK (length(secret) >= 32)
) STRICT;

INSERT INTO sealedSessionSecret (id, secret) SELECT id, secret FROM sessionSecret;

DROP TABLE sessionSecret;
ALTER TABLE sealedSessionSecret RENAME TO sessionSecret;

-- Tokens of the administrative surface beside the one in the configuration. Without a container
-- they are good for all of them.
CREATE TABLE adminToken (
    id TEXT PRIMARY KEY CHECK (id <> ''),
    verifier TEXT NOT NULL UNIQUE CHECK (length(verifier) = 64),
    label TEXT NOT NULL,
    mayChange INTEGER NOT NULL CHECK (mayChange IN (0, 1)),
    container INTEGER REFERENCES container (id),
    createdAt INTEGER NOT NULL,
    endsAt INTEGER,
    revokedAt INTEGER
) STRICT, WITHOUT ROWID;

-- Administrative calls that change something, and those that were refused. Without a status it is
-- not known how a call ended.
CREATE TABLE auditEntry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER CHECK (status BETWEEN 100 AND 599),
    code TEXT
) STRICT;

CREATE INDEX auditEntryAt ON auditEntry (at);
