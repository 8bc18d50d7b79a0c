#include "CSQLite.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A layer below SQLite, between its pager and its file access. If the header of a database file
// reserves eight bytes in each page, each page ends with a checksum of the page and its number. The
// checksum is written with the page and verified whenever the page is read. The write-ahead log has
// checksums of its own.

enum { TRAILER = 8, HEADER = 100, RESERVED_AT = 20, IS_SEALED = 0x42656c66 };

struct page_file {
    sqlite3_file base;
    int is_database;
    int is_sealed;
    int page_size;
    unsigned char *scratch;
};

static sqlite3_vfs *below;
static atomic_llong bad_page;
static atomic_int sync_error;
static atomic_int write_error;

static sqlite3_file *inner(sqlite3_file *file) {
    return (sqlite3_file *)((struct page_file *)file + 1);
}

// For a given state, different words lead to different states, and the same holds for a given word
// and different states. So a single changed word is always detected.
static uint64_t stir(uint64_t state, uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state << 29 | state >> 35;
}

uint64_t belfry_page_checksum(const unsigned char *page, int length, long long number) {
    uint64_t even = stir(0x42656c6672790001u, (uint64_t)number);
    uint64_t odd = stir(0x42656c6672790002u, (uint64_t)number);
    uint64_t words[2];
    int at = 0;
    for (; at + 16 <= length; at += 16) {
        memcpy(words, page + at, 16);
        even = stir(even, le64toh(words[0]));
        odd = stir(odd, le64toh(words[1]));
    }
    if (at + 8 <= length) {
        memcpy(words, page + at, 8);
        even = stir(even, le64toh(words[0]));
    }
    uint64_t sum = stir(even, odd << 32 | odd >> 32);
    return sum ^ sum >> 32;
}

static int is_page(int amount, sqlite3_int64 offset) {
    return amount >= 512 && amount <= 65536 && (amount & (amount - 1)) == 0 && offset % amount == 0;
}

static void learn(struct page_file *file, const unsigned char *bytes) {
    if (memcmp(bytes, "SQLite format 3", 16) != 0) return;
    int size = bytes[16] << 8 | bytes[17];
    file->page_size = size == 1 ? 65536 : size;
    file->is_sealed = bytes[RESERVED_AT] == TRAILER;
}

static int is_intact(const unsigned char *page, int amount, sqlite3_int64 offset) {
    uint64_t stored;
    memcpy(&stored, page + amount - TRAILER, TRAILER);
    uint64_t sum = belfry_page_checksum(page, amount - TRAILER, offset / amount + 1);
    if (le64toh(stored) == sum) return 1;
    atomic_store(&bad_page, offset / amount + 1);
    return 0;
}

static unsigned char *scratch(struct page_file *file) {
    if (!file->scratch) file->scratch = malloc(65536);
    return file->scratch;
}

static int read_bytes(sqlite3_file *next, void *bytes, int amount, sqlite3_int64 offset) {
    int result = next->pMethods->xRead(next, bytes, amount, offset);
    // For EIO, SQLite would report a damaged database, but the disk failed.
    return result == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : result;
}

static int read_part(struct page_file *file, void *bytes, int amount, sqlite3_int64 offset) {
    int size = file->page_size;
    sqlite3_int64 start = offset / size * size;
    unsigned char *page = scratch(file);
    if (!page) return SQLITE_IOERR_NOMEM;
    int result = read_bytes(inner(&file->base), page, size, start);
    if (result != SQLITE_OK) return result;
    if (!is_intact(page, size, start)) return SQLITE_IOERR_DATA;
    memcpy(bytes, page + (offset - start), amount);
    return SQLITE_OK;
}

static int page_read(sqlite3_file *base, void *bytes, int amount, sqlite3_int64 offset) {
    struct page_file *file = (struct page_file *)base;
    // SQLite reads the header before it locks the file, when the page may be half written.
    int is_header = offset + amount <= HEADER;
    if (file->is_sealed && file->page_size && !is_header && !is_page(amount, offset)
        && offset / file->page_size == (offset + amount - 1) / file->page_size) {
        return read_part(file, bytes, amount, offset);
    }
    int result = read_bytes(inner(base), bytes, amount, offset);
    if (!file->is_database || result != SQLITE_OK) return result;
    if (offset == 0 && amount >= HEADER) learn(file, bytes);
    if (!file->is_sealed || !is_page(amount, offset)) return result;
    return is_intact(bytes, amount, offset) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

static int page_write(sqlite3_file *base, const void *bytes, int amount, sqlite3_int64 offset) {
    struct page_file *file = (struct page_file *)base;
    sqlite3_file *next = inner(base);
    if (file->is_database && offset == 0 && amount >= HEADER) learn(file, bytes);
    if (file->is_sealed && is_page(amount, offset)) {
        unsigned char *page = scratch(file);
        if (!page) return SQLITE_IOERR_NOMEM;
        memcpy(page, bytes, amount - TRAILER);
        uint64_t sum = htole64(belfry_page_checksum(page, amount - TRAILER, offset / amount + 1));
        memcpy(page + amount - TRAILER, &sum, TRAILER);
        bytes = page;
    }
    errno = 0;
    int result = next->pMethods->xWrite(next, bytes, amount, offset);
    int error = errno;
    if ((result & 0xff) != SQLITE_IOERR) return result;
    // SQLite recognises a full disk but not an exceeded quota, which is just as temporary.
    if (error == EDQUOT) return SQLITE_FULL;
    atomic_store(&write_error, error);
    return result;
}

static int page_close(sqlite3_file *base) {
    struct page_file *file = (struct page_file *)base;
    sqlite3_file *next = inner(base);
    free(file->scratch);
    file->scratch = NULL;
    return next->pMethods ? next->pMethods->xClose(next) : SQLITE_OK;
}

static int page_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return inner(file)->pMethods->xTruncate(inner(file), size);
}

static int page_sync(sqlite3_file *file, int flags) {
    sqlite3_file *next = inner(file);
    int result = next->pMethods->xSync(next, flags);
    int error = 0;
    if (result != SQLITE_OK
        && next->pMethods->xFileControl(next, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK) {
        atomic_store(&sync_error, error);
    }
    return result;
}

static int page_size(sqlite3_file *file, sqlite3_int64 *size) {
    return inner(file)->pMethods->xFileSize(inner(file), size);
}

static int page_lock(sqlite3_file *file, int level) {
    return inner(file)->pMethods->xLock(inner(file), level);
}

static int page_unlock(sqlite3_file *file, int level) {
    return inner(file)->pMethods->xUnlock(inner(file), level);
}

static int page_check_lock(sqlite3_file *file, int *result) {
    return inner(file)->pMethods->xCheckReservedLock(inner(file), result);
}

static int page_control(sqlite3_file *base, int what, void *argument) {
    if (what == IS_SEALED) {
        *(int *)argument = ((struct page_file *)base)->is_sealed;
        return SQLITE_OK;
    }
    return inner(base)->pMethods->xFileControl(inner(base), what, argument);
}

static int page_sector(sqlite3_file *file) {
    return inner(file)->pMethods->xSectorSize(inner(file));
}

static int page_device(sqlite3_file *file) {
    return inner(file)->pMethods->xDeviceCharacteristics(inner(file));
}

static int page_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **at) {
    errno = 0;
    int result = inner(file)->pMethods->xShmMap(inner(file), region, size, extend, at);
    // Creating the file can fail for lack of space, just as growing it can, but SQLite reports only
    // the latter as such.
    int is_full = errno == ENOSPC || errno == EDQUOT;
    return (result & 0xff) == SQLITE_IOERR && is_full ? SQLITE_IOERR_SHMSIZE : result;
}

static int page_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return inner(file)->pMethods->xShmLock(inner(file), offset, count, flags);
}

static void page_shm_barrier(sqlite3_file *file) {
    inner(file)->pMethods->xShmBarrier(inner(file));
}

static int page_shm_unmap(sqlite3_file *file, int deletes) {
    return inner(file)->pMethods->xShmUnmap(inner(file), deletes);
}

// Memory-mapped pages would be read without verification.
static int page_fetch(sqlite3_file *file, sqlite3_int64 offset, int amount, void **bytes) {
    (void)file, (void)offset, (void)amount;
    *bytes = NULL;
    return SQLITE_OK;
}

static int page_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *bytes) {
    (void)file, (void)offset, (void)bytes;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    3, page_close, page_read, page_write, page_truncate, page_sync, page_size, page_lock,
    page_unlock, page_check_lock, page_control, page_sector, page_device, page_shm_map,
    page_shm_lock, page_shm_barrier, page_shm_unmap, page_fetch, page_unfetch,
};

static int open_file(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *granted) {
    (void)vfs;
    struct page_file *file = (struct page_file *)base;
    memset(file, 0, sizeof *file);
    memset(inner(base), 0, below->szOsFile);
    int result = below->xOpen(below, name, inner(base), flags, granted);
    if (inner(base)->pMethods) base->pMethods = &methods;
    file->is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    return result;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs) {
    (void)vfs;
    return below->xDelete(below, name, syncs);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs;
    return below->xAccess(below, name, flags, result);
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *result) {
    (void)vfs;
    return below->xFullPathname(below, name, size, result);
}

static int randomness(sqlite3_vfs *vfs, int size, char *bytes) {
    (void)vfs;
    return below->xRandomness(below, size, bytes);
}

static int pause_for(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return below->xSleep(below, microseconds);
}

static int current_time(sqlite3_vfs *vfs, double *days) {
    (void)vfs;
    return below->xCurrentTime(below, days);
}

static int current_time64(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds) {
    (void)vfs;
    return below->xCurrentTimeInt64(below, milliseconds);
}

static int last_error(sqlite3_vfs *vfs, int size, char *text) {
    (void)vfs;
    return below->xGetLastError(below, size, text);
}

static sqlite3_vfs layer;
static int is_registered;

static void register_layer(void) {
    below = sqlite3_vfs_find(NULL);
    if (!below || below->iVersion < 2) return;
    layer.iVersion = 2;
    layer.szOsFile = (int)sizeof(struct page_file) + below->szOsFile;
    layer.mxPathname = below->mxPathname;
    layer.zName = "belfry";
    layer.xOpen = open_file;
    layer.xDelete = delete_file;
    layer.xAccess = access_file;
    layer.xFullPathname = full_name;
    layer.xRandomness = randomness;
    layer.xSleep = pause_for;
    layer.xCurrentTime = current_time;
    layer.xCurrentTimeInt64 = current_time64;
    layer.xGetLastError = last_error;
    is_registered = sqlite3_vfs_register(&layer, 1) == SQLITE_OK;
}

int belfry_sqlite_guard_pages(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_layer);
    return is_registered;
}

int belfry_sqlite_reserve_trailers(struct sqlite3 *connection) {
    int reserved = TRAILER;
    return sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
}

int belfry_sqlite_is_sealed(struct sqlite3 *connection) {
    int is_sealed = 0;
    if (sqlite3_file_control(connection, "main", IS_SEALED, &is_sealed) != SQLITE_OK) return 0;
    return is_sealed;
}

long long belfry_sqlite_bad_page(void) {
    return atomic_load(&bad_page);
}

int belfry_sqlite_sync_error(void) {
    return atomic_load(&sync_error);
}

int belfry_sqlite_write_error(void) {
    return atomic_load(&write_error);
}

int belfry_pages_reseal(int file) {
    unsigned char page[65536];
    if (pread(file, page, HEADER, 0) != HEADER) return EINVAL;
    int size = page[16] << 8 | page[17];
    if (size == 1) size = 65536;
    if (!is_page(size, 0) || page[RESERVED_AT] != TRAILER) return EINVAL;
    for (long long number = 1;; number++) {
        off_t at = (off_t)(number - 1) * size;
        ssize_t count = pread(file, page, size, at);
        if (count < 0) return errno;
        if (count < size) break;
        uint64_t sum = htole64(belfry_page_checksum(page, size - TRAILER, number));
        if (memcmp(page + size - TRAILER, &sum, TRAILER) == 0) continue;
        if (pwrite(file, &sum, TRAILER, at + size - TRAILER) != TRAILER) return errno;
    }
    return fsync(file) == 0 ? 0 : errno;
}
