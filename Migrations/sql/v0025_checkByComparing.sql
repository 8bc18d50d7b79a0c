-- For a list of three SQLite makes an index, each time that a row is checked against it; comparisons say the same in
-- a tenth of the time. No row changes, so the text of the schema is all that does: SQLite has a way for that
-- (https://www.sqlite.org/lang_altertable.html, 7). What is created and dropped tells other connections.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    sql, 'CHECK (database IN (''public'', ''private'', ''shared''))',
    'CHECK (database = ''public'' OR database = ''private'' OR database = ''shared'')')
WHERE type = 'table';
UPDATE sqlite_schema SET sql = replace(
    sql, 'CHECK (kind IN (''apiToken'', ''serverToServer'', ''bearer''))',
    'CHECK (kind = ''apiToken'' OR kind = ''serverToServer'' OR kind = ''bearer'')')
WHERE name = 'accessKey';
PRAGMA writable_schema = RESET;
CREATE TABLE checksChanged (number INTEGER PRIMARY KEY) STRICT;
DROP TABLE checksChanged;
