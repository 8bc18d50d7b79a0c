-- A field may be marked as one that each condition holds to constants (8, beside queryable, sortable and searchable): no
-- row changes, so the text of the schema is all that does, as in v0025.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    sql, 'CHECK (uses BETWEEN 0 AND 7)', 'CHECK (uses BETWEEN 0 AND 15)')
WHERE name = 'recordField';
PRAGMA writable_schema = RESET;
CREATE TABLE usesChanged (number INTEGER PRIMARY KEY) STRICT;
DROP TABLE usesChanged;
