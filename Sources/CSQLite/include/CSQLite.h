#pragma once

/// What SQLite offers only through variadic functions and callbacks, which Swift cannot use, and
/// what its write-ahead log says without it.

struct sqlite3;
struct belfry_wal_watch;

/// Sets SQLITE_DBCONFIG_DEFENSIVE: no statement may write the schema table or shadow tables, or
/// otherwise damage the file on purpose. Returns what the connection reports: 1 if it is on.
int belfry_sqlite_defend(struct sqlite3 *connection);

/// Sets SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE: whether the connection, if it closes last, folds the
/// write-ahead log into the file and removes it. Returns what it reports: 0 if it writes nothing.
int belfry_sqlite_fold_at_close(struct sqlite3 *connection, int folds);

/// Notes after each commit of the connection how many frames its write-ahead log has, in place of
/// SQLite's own checkpoints. NULL without memory.
struct belfry_wal_watch *belfry_sqlite_watch_wal(struct sqlite3 *connection);

/// The frames after the last commit.
int belfry_wal_frames(const struct belfry_wal_watch *watch);

/// Ends watching, and frees the watch.
void belfry_sqlite_unwatch_wal(struct sqlite3 *connection, struct belfry_wal_watch *watch);

/// Reads the write-ahead log at `path`, which nobody may be writing: the first frame that is broken
/// although a commit after it was followed by another transaction, and so had been synced; counted
/// from 1, 0 if there is none.
///
/// SQLite takes the log up to the first broken frame, whatever comes after it. Behind a power cut
/// only the last transaction can be broken, because each was synced before the next began.
long long belfry_wal_broken_frame(const char *path);
