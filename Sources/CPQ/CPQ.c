#include "CPQ.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int cpq_wake_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void cpq_wake_signal(int wake) {
    uint64_t one = 1;
    /* A full counter (EAGAIN) wakes the thread as well. */
    while (write(wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void cpq_wake_close(int wake) { close(wake); }

int cpq_wait(int socket, int read_wanted, int write_wanted, int wake, int milliseconds) {
    struct pollfd waits[2] = {{.fd = wake, .events = POLLIN}, {.fd = socket}};
    if (read_wanted) waits[1].events |= POLLIN;
    if (write_wanted) waits[1].events |= POLLOUT;
    if (poll(waits, 2, milliseconds) <= 0) return 0;
    int happened = 0;
    if (waits[0].revents) {
        uint64_t count;
        (void)!read(wake, &count, sizeof count);
        happened |= CPQ_WOKEN;
    }
    if (waits[1].revents & (POLLIN | POLLERR | POLLHUP)) happened |= CPQ_READABLE;
    if (waits[1].revents & (POLLOUT | POLLERR | POLLHUP)) happened |= CPQ_WRITABLE;
    return happened;
}

static void note(void *data, const PGresult *remark) {
    int *counts = data;
    const char *severity = PQresultErrorField(remark, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (!severity || strcmp(severity, "WARNING")) return;
    ++counts[CPQ_ALL];
    const char *state = PQresultErrorField(remark, PG_DIAG_SQLSTATE);
    if (state && !strcmp(state, "55000")) ++counts[CPQ_OF_WHAT_LACKS];
}

void cpq_count_warnings(PGconn *connection, int *counts) {
    PQsetNoticeReceiver(connection, note, counts);
}

int cpq_own_address(int socket, char *buffer, int size) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return 0;
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return 0;
    return getnameinfo((struct sockaddr *)&address, length, buffer, (socklen_t)size, 0, 0,
                       NI_NUMERICHOST) == 0;
}
