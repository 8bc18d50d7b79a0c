// A shim below the file calls of one process (LD_PRELOAD), for the campaigns in this folder.
//
//   FAULT_PATH    files whose path contains this text are meant; -shm files never are
//   FAULT_CALLS   which calls count: w (writes), s (syncs) or ws; both unless given
//   FAULT_KILL_AT n     kills the process with SIGKILL at the n-th call
//   FAULT_FAIL_AT n     fails from the n-th call on, FAULT_FAIL_COUNT times (once unless given)
//   FAULT_UNLESS  calls on files whose path contains this text do not count, and do not fail
//   FAULT_AFTER   a file that gets a line for every write, sync, truncation and removal of the
//                 database or its log after the first failing call
//   FAULT_ERRNO   the error of failing calls (EIO unless given); "short" writes half instead, and
//                 "ignored" leaves a sync out and says that it is done
//   FAULT_LOG     a file that records writes, syncs, truncations and removals, for images.py
//
// Build: cc -shared -fPIC -O1 -o faults.so faults.c -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST_DESCRIPTOR = 4096 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[LAST_DESCRIPTOR];
static const char *wanted, *unless, *after, *calls = "ws";
static int has_failed;
static long kill_at, fail_at, fail_count = 1, count;
static int error_number = EIO, short_writes, ignores_syncs;
static FILE *record_file;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void configure(void) {
    wanted = getenv("FAULT_PATH");
    unless = getenv("FAULT_UNLESS");
    after = getenv("FAULT_AFTER");
    if (getenv("FAULT_CALLS")) calls = getenv("FAULT_CALLS");
    kill_at = number("FAULT_KILL_AT", 0);
    fail_at = number("FAULT_FAIL_AT", 0);
    fail_count = number("FAULT_FAIL_COUNT", 1);
    const char *error = getenv("FAULT_ERRNO");
    if (error && strcmp(error, "short") == 0) short_writes = 1;
    else if (error && strcmp(error, "ignored") == 0) ignores_syncs = 1;
    else if (error) error_number = atoi(error);
    const char *path = getenv("FAULT_LOG");
    if (path) {
        FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
        record_file = real(path, "ab");
    }
}

static const char *meant(int descriptor) {
    return descriptor >= 0 && descriptor < LAST_DESCRIPTOR ? paths[descriptor] : NULL;
}

static int matches(const char *path) {
    return wanted && path && strstr(path, wanted) && !strstr(path, "-shm")
        && !strstr(path, ".lock");
}

static int remember(int descriptor, const char *path) {
    if (descriptor >= 0 && descriptor < LAST_DESCRIPTOR && matches(path))
        paths[descriptor] = strdup(path);
    return descriptor;
}

// Notes a call that comes after a failing one, if it concerns the database or its log.
static void note_late(const char *call, const char *path) {
    if (!after || !has_failed || !path) return;
    const char *ending = strstr(path, ".sqlite");
    if (!ending || (ending[7] && strcmp(ending + 7, "-wal"))) return;
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int descriptor = real(after, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (descriptor >= 0) {
        dprintf(descriptor, "%s %s\n", call, path);
        int (*end)(int) = dlsym(RTLD_NEXT, "close");
        end(descriptor);
    }
}

// Counts a call; 1 if it must fail.
static int fails(char kind, const char *path) {
    if (!strchr(calls, kind) || (unless && strstr(path, unless))) return 0;
    pthread_mutex_lock(&lock);
    long now = ++count;
    pthread_mutex_unlock(&lock);
    if (kill_at && now == kill_at) kill(getpid(), SIGKILL);
    int is_failing = fail_at && now >= fail_at && now < fail_at + fail_count;
    if (is_failing) has_failed = 1;
    return is_failing;
}

// One record: kind, length of the path, path, offset, length of the data, data.
static void record(char kind, const char *path, int64_t offset, int64_t length, const void *data) {
    if (!record_file) return;
    int32_t path_length = (int32_t)strlen(path);
    pthread_mutex_lock(&lock);
    fwrite(&kind, 1, 1, record_file);
    fwrite(&path_length, 4, 1, record_file);
    fwrite(path, 1, path_length, record_file);
    fwrite(&offset, 8, 1, record_file);
    fwrite(&length, 8, 1, record_file);
    if (data) fwrite(data, 1, length, record_file);
    fflush(record_file);
    pthread_mutex_unlock(&lock);
}

#define REAL(type, name, ...)                       \
    static type (*real)(__VA_ARGS__);               \
    if (!real) real = dlsym(RTLD_NEXT, #name);      \
    pthread_once(&once, configure)

#define OPENS(name)                                                         \
    int name(const char *path, int flags, ...) {                            \
        va_list list;                                                       \
        va_start(list, flags);                                              \
        mode_t mode = va_arg(list, int);                                    \
        va_end(list);                                                       \
        REAL(int, name, const char *, int, ...);                            \
        return remember(real(path, flags, mode), path);                     \
    }
OPENS(open)
OPENS(open64)

int close(int descriptor) {
    REAL(int, close, int);
    if (meant(descriptor)) {
        free(paths[descriptor]);
        paths[descriptor] = NULL;
    }
    return real(descriptor);
}

static ssize_t faulty_write(
    ssize_t (*real)(int, const void *, size_t, off64_t), int descriptor, const void *data,
    size_t length, off64_t offset
) {
    const char *path = meant(descriptor);
    note_late("write", path);
    if (path && fails('w', path)) {
        if (short_writes && length > 1) {
            record('W', path, offset, length / 2, data);
            real(descriptor, data, length / 2, offset);
            errno = ENOSPC;
            return -1;
        }
        errno = error_number;
        return -1;
    }
    if (path) record('W', path, offset, length, data);
    return real(descriptor, data, length, offset);
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return faulty_write(real, descriptor, data, length, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return faulty_write(real, descriptor, data, length, offset);
}

#define SYNCS(name)                                                         \
    int name(int descriptor) {                                              \
        REAL(int, name, int);                                               \
        const char *path = meant(descriptor);                               \
        note_late("sync", path);                                            \
        if (path && fails('s', path)) {                                     \
            if (ignores_syncs) return 0;                                    \
            errno = error_number;                                           \
            return -1;                                                      \
        }                                                                   \
        int result = real(descriptor);                                      \
        if (path && result == 0) record('S', path, 0, 0, NULL);             \
        return result;                                                      \
    }
SYNCS(fsync)
SYNCS(fdatasync)

#define TRUNCATES(name, type)                                               \
    int name(int descriptor, type length) {                                 \
        REAL(int, name, int, type);                                         \
        const char *path = meant(descriptor);                               \
        note_late("truncate", path);                                        \
        if (path) record('T', path, length, 0, NULL);                       \
        return real(descriptor, length);                                    \
    }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    if (matches(path)) {
        note_late("unlink", path);
        record('U', path, 0, 0, NULL);
    }
    return real(path);
}
