#pragma once

#include <sqlite3.h>
#include <stdint.h>

/// What SQLite offers only through variadic functions and callbacks, which Swift cannot use, and
/// what its write-ahead log says without it.

struct belfry_wal_watch;

/// Has a name in double quotes that nothing is called be an error, and not a text
/// (SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_DQS_DDL). Returns SQLite's code.
int belfry_sqlite_refuse_quoted_texts(struct sqlite3 *connection);

/// Sets SQLITE_DBCONFIG_DEFENSIVE: whether no statement may write the schema table or shadow tables,
/// or otherwise damage the file on purpose. Returns what the connection reports: 1 if it is on.
int belfry_sqlite_defend(struct sqlite3 *connection, int defends);

/// Sets SQLITE_DBCONFIG_ENABLE_TRIGGER: whether triggers fire by what the connection writes. Returns
/// what it reports: 1 if they do.
int belfry_sqlite_fire_triggers(struct sqlite3 *connection, int fires);

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

/// Follows the checksums of `count` frames of a write-ahead log with the eight bytes `salt`, which lie
/// one behind the other, from the two words `sum` on; those become the checksum of the last frame
/// that follows. Returns how many do.
int belfry_wal_follow(
    const unsigned char *frames, int count, int page, int is_big, const unsigned char *salt,
    uint32_t *sum);

/// Puts a layer below all connections that are opened from now on, which gives each page of a
/// database file a checksum, where the file has room for it, and compares it whenever the page is
/// read; what differs is SQLITE_IOERR_DATA. It also answers a used up quota as a full disk. Returns
/// whether it is there.
int belfry_sqlite_guard_pages(void);

/// Has a database that is made, or rewritten by VACUUM, keep room for checksums in its pages.
/// Returns SQLite's code.
int belfry_sqlite_reserve_trailers(struct sqlite3 *connection);

/// Whether the pages of the file have checksums, by the header that was read or written last.
int belfry_sqlite_is_sealed(struct sqlite3 *connection);

/// The page whose checksum differed last, in any file; 0 if there was none.
long long belfry_sqlite_bad_page(void);

// The error of the system at the last sync that failed; 0 if none did.
int belfry_sqlite_sync_error(void);

/// The checksum of the first `length` bytes of page `number`.
uint64_t belfry_page_checksum(const unsigned char *page, int length, long long number);

/// Writes the checksums of all pages of an open database file anew, as the pages are; nobody may
/// have it open. Returns 0, or what `errno` says; EINVAL if its pages have no room for them.
int belfry_pages_reseal(int file);
