-- A field may be marked as one that each condition holds to constants: 8, beside queryable, sortable and searchable.
ALTER TABLE recordField DROP CONSTRAINT recordfield_uses_check;
ALTER TABLE recordField ADD CONSTRAINT recordfield_uses_check CHECK (uses BETWEEN 0 AND 15);
