#pragma once

/// What SQLite offers only through variadic functions, which Swift cannot call.

struct sqlite3;

/// Sets SQLITE_DBCONFIG_DEFENSIVE: no statement may write the schema table or shadow tables, or
/// otherwise damage the file on purpose. Returns what the connection reports: 1 if it is on.
int belfry_sqlite_defend(struct sqlite3 *connection);
