#include "CSQLite.h"

#include <stddef.h>
#include <stdlib.h>

int belfry_sqlite_refuse_quoted_texts(struct sqlite3 *connection) {
    int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    return code ? code : sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
}

int belfry_sqlite_defend(struct sqlite3 *connection, int defends) {
    int state = 0;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, defends, &state)) return -1;
    return state;
}

int belfry_sqlite_fire_triggers(struct sqlite3 *connection, int fires) {
    int state = 1;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, fires, &state)) return -1;
    return state;
}

int belfry_sqlite_fold_at_close(struct sqlite3 *connection, int folds) {
    int state = 0;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !folds, &state)) return -1;
    return !state;
}

struct belfry_wal_watch {
    int frames;
};

static int note_frames(void *watch, struct sqlite3 *connection, const char *name, int frames) {
    (void)connection;
    (void)name;
    ((struct belfry_wal_watch *)watch)->frames = frames;
    return SQLITE_OK;
}

struct belfry_wal_watch *belfry_sqlite_watch_wal(struct sqlite3 *connection) {
    struct belfry_wal_watch *watch = calloc(1, sizeof *watch);
    if (watch) sqlite3_wal_hook(connection, note_frames, watch);
    return watch;
}

int belfry_wal_frames(const struct belfry_wal_watch *watch) {
    return watch->frames;
}

void belfry_sqlite_unwatch_wal(struct sqlite3 *connection, struct belfry_wal_watch *watch) {
    sqlite3_wal_hook(connection, NULL, NULL);
    free(watch);
}
