#define _GNU_SOURCE
#include "CPlatform.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct start {
    void (*function)(void *);
    void *context;
    char name[16];
};

static void *run(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.function(start.context);
    return NULL;
}

int belfry_thread_start(void (*function)(void *), void *context, const char *name) {
    struct start *start = calloc(1, sizeof *start);
    if (!start) return ENOMEM;
    start->function = function;
    start->context = context;
    strncpy(start->name, name, sizeof start->name - 1);
    pthread_t thread;
    int code = pthread_create(&thread, NULL, run, start);
    if (code) free(start);
    else pthread_detach(thread);
    return code;
}

long belfry_send(int socket, const void *bytes, unsigned long count) {
    ssize_t sent;
    do sent = send(socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}
