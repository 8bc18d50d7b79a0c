-- Changes of one request belong together for whoever is shown them: entries tell whether the request
-- of the entry before them goes on.

ALTER TABLE logEntry
    ADD COLUMN continuesRequest INTEGER NOT NULL DEFAULT 0 CHECK (continuesRequest IN (0, 1));
