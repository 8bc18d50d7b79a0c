#pragma once
#include <stdint.h>

/* Debian keeps the header in a folder of its own, others among all. */
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

/* An event that wakes a thread out of cpq_wait; below zero if no descriptor is left. */
int cpq_wake_create(void);
void cpq_wake_signal(int wake);
void cpq_wake_close(int wake);

/* What happened while waiting. */
enum { CPQ_READABLE = 1, CPQ_WRITABLE = 2, CPQ_WOKEN = 4 };

/* Waits until the socket can be read, or written where write is not 0, until the event is
   signalled, or until milliseconds have passed; a socket below zero is left out. Clears the event. */
int cpq_wait(int socket, int read, int write, int wake, int milliseconds);

/* Which warnings are counted: all, and those with the state 55000, that something lacks which is
   needed. */
enum { CPQ_ALL = 0, CPQ_OF_WHAT_LACKS = 1, CPQ_WARNINGS = 2 };

/* From now on counts the connection's warnings, whatever language they are in, and prints nothing
   of what the server remarks; there are CPQ_WARNINGS counts. */
void cpq_count_warnings(PGconn *connection, int *counts);

/* The numeric address of this end of a socket, with a zero after it; returns 0 if it has none, as
   one in the file system. */
enum { CPQ_ADDRESS_BYTES = 64 };
int cpq_own_address(int socket, char *buffer, int size);
