#pragma once
#include <stdint.h>

/* Debian has the header in its own folder, other systems in the common one. */
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

/* Creates an event that wakes a thread from cpq_wait; negative if no descriptor is left. */
int cpq_wake_create(void);
void cpq_wake_signal(int wake);
void cpq_wake_close(int wake);

/* What ended a wait, as flags. */
enum { CPQ_READABLE = 1, CPQ_WRITABLE = 2, CPQ_WOKEN = 4 };

/* Waits until the socket is readable (if read is not 0) or writable (if write is not 0), the event
   is signalled, or milliseconds have passed. A negative socket is ignored. Clears the event. */
int cpq_wait(int socket, int read, int write, int wake, int milliseconds);

/* The counts of warnings: all, and those with the state 55000 (object not in prerequisite
   state). */
enum { CPQ_ALL = 0, CPQ_OF_WHAT_LACKS = 1, CPQ_WARNINGS = 2 };

/* Counts the connection's warnings from now on, independently of their language, instead of
   printing the server's notices. counts has CPQ_WARNINGS elements. */
void cpq_count_warnings(PGconn *connection, int *counts);

/* Writes the numeric address of this end of a socket, terminated by a zero byte. Returns 0 if it
   has none, for example a Unix domain socket. */
enum { CPQ_ADDRESS_BYTES = 64 };
int cpq_own_address(int socket, char *buffer, int size);
