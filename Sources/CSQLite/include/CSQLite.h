#pragma once

#include <sqlite3.h>
#include <stdint.h>

/// Functions of SQLite that are variadic or need callbacks, which Swift cannot use, and functions
/// that read the write-ahead log without SQLite.

struct belfry_wal_watch;

/// Makes a name in double quotes that matches nothing an error instead of a text
/// (SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_DQS_DDL). Returns SQLite's code.
int belfry_sqlite_refuse_quoted_texts(struct sqlite3 *connection);

/// Sets SQLITE_DBCONFIG_DEFENSIVE: statements may not write the schema table or shadow tables, or
/// otherwise damage the file on purpose. Returns what the connection reports: 1 if it is
/// on, -1 after an error.
int belfry_sqlite_defend(struct sqlite3 *connection, int defends);

/// Sets SQLITE_DBCONFIG_ENABLE_TRIGGER: whether writes of this connection fire triggers. Returns
/// what the connection reports: 1 if they do, -1 after an error.
int belfry_sqlite_fire_triggers(struct sqlite3 *connection, int fires);

/// Sets SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE: whether the last connection, when it closes, checkpoints
/// the write-ahead log into the file and removes it. Returns what the connection reports: 0 if it
/// leaves the log alone, -1 after an error.
int belfry_sqlite_fold_at_close(struct sqlite3 *connection, int folds);

/// Records the number of frames in the write-ahead log after each commit of the connection, instead
/// of SQLite's automatic checkpoints. Returns NULL if there is no memory.
struct belfry_wal_watch *belfry_sqlite_watch_wal(struct sqlite3 *connection);

/// Returns the number of frames after the last commit.
int belfry_wal_frames(const struct belfry_wal_watch *watch);

/// Stops watching, and frees the watch.
void belfry_sqlite_unwatch_wal(struct sqlite3 *connection, struct belfry_wal_watch *watch);

/// Checks the write-ahead log at `path`, which must not be written to meanwhile. Returns the first
/// frame, counted from 1, that is broken although a later commit was followed by another
/// transaction and so had been synced; 0 if there is none.
///
/// SQLite uses the log up to the first broken frame and ignores everything after it. After a power
/// failure, only the last transaction can be broken, because each was synced before the next began.
long long belfry_wal_broken_frame(const char *path);

/// Verifies the checksums of up to `count` consecutive frames of a write-ahead log with the eight
/// bytes `salt`. `sum` holds the two words of the checksum before the first frame, and receives
/// that of the last valid frame. Returns the number of valid frames.
int belfry_wal_follow(
    const unsigned char *frames, int count, int page, int is_big, const unsigned char *salt,
    uint32_t *sum);

/// Installs a layer below all connections that are opened from now on. It adds a checksum to each
/// page of a database file that has room for one, and verifies it whenever the page is read; a
/// mismatch is SQLITE_IOERR_DATA. It also reports an exceeded quota as a full disk, and a read that
/// fails with EIO as SQLITE_IOERR_READ. Returns whether the layer is installed.
int belfry_sqlite_guard_pages(void);

/// Makes a database that is created, or rewritten by VACUUM, reserve room for checksums in its
/// pages. Returns SQLite's code.
int belfry_sqlite_reserve_trailers(struct sqlite3 *connection);

/// Returns whether the pages of the file have checksums, according to the header that was read or
/// written last.
int belfry_sqlite_is_sealed(struct sqlite3 *connection);

/// Returns the page with the last checksum mismatch, in any file; 0 if there was none.
long long belfry_sqlite_bad_page(void);

// Returns the system's error of the last failed sync; 0 if none failed.
int belfry_sqlite_sync_error(void);

// Returns the system's error of the last failed write; 0 if none failed.
int belfry_sqlite_write_error(void);

/// Returns the checksum of the first `length` bytes of page `number`.
uint64_t belfry_page_checksum(const unsigned char *page, int length, long long number);

/// Rewrites the checksums of all pages of an open database file to fit the pages. No connection may
/// have the file open. Returns 0 or an errno; EINVAL if the pages have no room for checksums.
int belfry_pages_reseal(int file);
