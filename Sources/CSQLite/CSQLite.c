#include "CSQLite.h"

#include <sqlite3.h>
#include <stddef.h>

int belfry_sqlite_defend(struct sqlite3 *connection) {
    int state = 0;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, &state) != SQLITE_OK) {
        return 0;
    }
    return state;
}
