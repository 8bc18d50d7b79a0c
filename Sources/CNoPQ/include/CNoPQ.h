/* Replaces the parts of libpq and CPQ that PostgresLink uses, for a build without them. Every
   attempt to connect fails with a message that says so. Values need not be those of libpq, since
   they never leave the process. Everything is inline, so that nothing clashes with libpq where it
   is linked. */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct belfry_no_connection PGconn;
typedef struct belfry_no_result PGresult;
typedef struct {
    char *relname;
} PGnotify;
typedef unsigned int Oid;

typedef enum { CONNECTION_OK, CONNECTION_BAD } ConnStatusType;
typedef enum { PQTRANS_IDLE, PQTRANS_INTRANS, PQTRANS_INERROR } PGTransactionStatusType;
typedef enum {
    PGRES_COMMAND_OK,
    PGRES_TUPLES_OK,
    PGRES_COPY_IN,
    PGRES_COPY_OUT,
    PGRES_COPY_BOTH,
    PGRES_SINGLE_TUPLE,
    PGRES_PIPELINE_SYNC,
    PGRES_PIPELINE_ABORTED,
} ExecStatusType;

/* A connection option, as a URL names it. */
typedef struct {
    char *keyword;
    char *val;
} PQconninfoOption;

static char cnopq_reason[] =
    "this Belfry was built without PostgreSQL; the package trait PostgreSQL, which is on by default, "
    "builds it in";
/* An empty text; its address also serves as the connection, which is never dereferenced. */
static char cnopq_nothing[] = "";

static inline PQconninfoOption *PQconninfoParse(const char *text, char **why) {
    (void)text;
    *why = strdup(cnopq_reason);
    return NULL;
}
static inline PQconninfoOption *PQconndefaults(void) { return NULL; }
static inline void PQconninfoFree(PQconninfoOption *options) { (void)options; }
static inline void PQfreemem(void *memory) { free(memory); }

static inline PGconn *PQconnectdbParams(
    const char *const *keys, const char *const *values, int expands) {
    (void)keys, (void)values, (void)expands;
    return (PGconn *)cnopq_nothing;
}
static inline ConnStatusType PQstatus(const PGconn *connection) {
    return (void)connection, CONNECTION_BAD;
}
static inline char *PQerrorMessage(const PGconn *connection) {
    return (void)connection, cnopq_reason;
}
static inline PQconninfoOption *PQconninfo(PGconn *connection) { return (void)connection, NULL; }
static inline void PQfinish(PGconn *connection) { (void)connection; }

static inline int PQsetnonblocking(PGconn *connection, int flag) {
    return (void)connection, (void)flag, -1;
}
static inline int PQserverVersion(const PGconn *connection) { return (void)connection, 0; }
static inline const char *PQparameterStatus(const PGconn *connection, const char *name) {
    return (void)connection, (void)name, NULL;
}
static inline int PQbackendPID(const PGconn *connection) { return (void)connection, 0; }
static inline char *PQdb(const PGconn *connection) { return (void)connection, cnopq_nothing; }
static inline char *PQhost(const PGconn *connection) { return (void)connection, cnopq_nothing; }
static inline char *PQport(const PGconn *connection) { return (void)connection, cnopq_nothing; }
static inline int PQsocket(const PGconn *connection) { return (void)connection, -1; }
static inline PGTransactionStatusType PQtransactionStatus(const PGconn *connection) {
    return (void)connection, PQTRANS_IDLE;
}
static inline int PQsendQuery(PGconn *connection, const char *sql) {
    return (void)connection, (void)sql, 0;
}
static inline int PQsendQueryParams(
    PGconn *connection, const char *sql, int count, const Oid *types, const char *const *values,
    const int *lengths, const int *formats, int form) {
    (void)connection, (void)sql, (void)count, (void)types, (void)values;
    return (void)lengths, (void)formats, (void)form, 0;
}
static inline int PQsendPrepare(
    PGconn *connection, const char *name, const char *sql, int count, const Oid *types) {
    return (void)connection, (void)name, (void)sql, (void)count, (void)types, 0;
}
static inline int PQsendQueryPrepared(
    PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
    const int *formats, int form) {
    (void)connection, (void)name, (void)count, (void)values;
    return (void)lengths, (void)formats, (void)form, 0;
}
static inline int PQsetSingleRowMode(PGconn *connection) { return (void)connection, 0; }
static inline int PQenterPipelineMode(PGconn *connection) { return (void)connection, 0; }
static inline int PQpipelineSync(PGconn *connection) { return (void)connection, 0; }
static inline int PQflush(PGconn *connection) { return (void)connection, -1; }
static inline int PQisBusy(PGconn *connection) { return (void)connection, 0; }
static inline int PQconsumeInput(PGconn *connection) { return (void)connection, 0; }
static inline int PQsslInUse(PGconn *connection) { return (void)connection, 0; }
static inline PGnotify *PQnotifies(PGconn *connection) { return (void)connection, NULL; }
static inline PGresult *PQgetResult(PGconn *connection) { return (void)connection, NULL; }
static inline int PQgetCopyData(PGconn *connection, char **buffer, int asynchronous) {
    return (void)connection, (void)buffer, (void)asynchronous, -2;
}
static inline int PQputCopyData(PGconn *connection, const char *buffer, int length) {
    return (void)connection, (void)buffer, (void)length, -1;
}

static inline ExecStatusType PQresultStatus(const PGresult *result) {
    return (void)result, PGRES_COMMAND_OK;
}
static inline char *PQresultErrorField(const PGresult *result, int field) {
    return (void)result, (void)field, NULL;
}
static inline char *PQresultErrorMessage(const PGresult *result) {
    return (void)result, cnopq_reason;
}
static inline char *PQcmdStatus(PGresult *result) { return (void)result, cnopq_nothing; }
static inline char *PQcmdTuples(PGresult *result) { return (void)result, cnopq_nothing; }
static inline int PQntuples(const PGresult *result) { return (void)result, 0; }
static inline int PQnfields(const PGresult *result) { return (void)result, 0; }
static inline char *PQfname(const PGresult *result, int column) {
    return (void)result, (void)column, NULL;
}
static inline Oid PQftype(const PGresult *result, int column) {
    return (void)result, (void)column, 0;
}
static inline int PQgetisnull(const PGresult *result, int row, int column) {
    return (void)result, (void)row, (void)column, 1;
}
static inline int PQgetlength(const PGresult *result, int row, int column) {
    return (void)result, (void)row, (void)column, 0;
}
static inline char *PQgetvalue(const PGresult *result, int row, int column) {
    return (void)result, (void)row, (void)column, cnopq_nothing;
}
static inline void PQclear(PGresult *result) { (void)result; }

enum { CPQ_WOKEN = 4 };

/* There is no server to wait for, so a wait ends when its time has passed. */
static inline int cpq_wake_create(void) { return 0; }
static inline void cpq_wake_signal(int wake) { (void)wake; }
static inline void cpq_wake_close(int wake) { (void)wake; }
static inline int cpq_wait(int socket, int read, int write, int wake, int milliseconds) {
    (void)socket, (void)read, (void)write, (void)wake;
    return poll(NULL, 0, milliseconds), 0;
}
enum { CPQ_ALL = 0, CPQ_OF_WHAT_LACKS = 1, CPQ_WARNINGS = 2 };
static inline void cpq_count_warnings(PGconn *connection, int *counts) {
    (void)connection, (void)counts;
}
enum { CPQ_ADDRESS_BYTES = 64 };
static inline int cpq_own_address(int socket, char *buffer, int size) {
    return (void)socket, (void)buffer, (void)size, 0;
}
