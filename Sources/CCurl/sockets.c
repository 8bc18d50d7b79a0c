#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef void (*alpn_function)(const void *, const unsigned char **, unsigned *);

/* libcurl reports the result of ALPN only with the answer, when a request may already have gone out
 * over HTTP/1.1. OpenSSL is loaded with libcurl, so its function is looked up by name and its
 * headers are not needed. */
int ccurl_negotiated_http2(CURL *easy) {
    static alpn_function selected;
    if (!selected) selected = (alpn_function)dlsym(RTLD_DEFAULT, "SSL_get0_alpn_selected");
    struct curl_tlssessioninfo *session = NULL;
    if (!selected || curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK) return -1;
    if (!session || session->backend != CURLSSLBACKEND_OPENSSL || !session->internals) return -1;
    const unsigned char *name = NULL;
    unsigned length = 0;
    selected(session->internals, &name, &length);
    return name && length == 2 && memcmp(name, "h2", 2) == 0;
}

int ccurl_socket_open(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void ccurl_socket_close(int descriptor) {
    close(descriptor);
}

void ccurl_socket_cork(int descriptor, int on) {
    setsockopt(descriptor, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

void ccurl_socket_guard(int descriptor, unsigned user_timeout, int probes) {
    setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
    setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

int ccurl_poll_create(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

int ccurl_poll_watch(int poll, int descriptor, int flags, uint64_t key) {
    struct epoll_event event = {.data.u64 = key};
    if (flags & CCURL_READ) event.events |= EPOLLIN;
    if (flags & CCURL_WRITE) event.events |= EPOLLOUT;
    if (flags & CCURL_HANGUP) event.events |= EPOLLRDHUP;
    if (epoll_ctl(poll, EPOLL_CTL_MOD, descriptor, &event) == 0) return 0;
    return errno == ENOENT ? epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) : -1;
}

void ccurl_poll_forget(int poll, int descriptor) {
    epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, NULL);
}

int ccurl_poll_wait(int poll, struct ccurl_event *events, int capacity, int milliseconds) {
    struct epoll_event found[64];
    int count = epoll_wait(poll, found, capacity < 64 ? capacity : 64, milliseconds);
    for (int index = 0; index < count; index++) {
        uint32_t seen = found[index].events;
        int flags = 0;
        if (seen & (EPOLLIN | EPOLLHUP)) flags |= CCURL_READ;
        if (seen & EPOLLOUT) flags |= CCURL_WRITE;
        if (seen & EPOLLERR) flags |= CCURL_ERROR;
        if (seen & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) flags |= CCURL_HANGUP;
        events[index] = (struct ccurl_event){.key = found[index].data.u64, .flags = flags};
    }
    return count < 0 ? 0 : count;
}

int ccurl_wake_create(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void ccurl_wake_signal(int event) {
    uint64_t one = 1;
    (void)!write(event, &one, sizeof one);
}

void ccurl_wake_clear(int event) {
    uint64_t count;
    (void)!read(event, &count, sizeof count);
}

uint64_t ccurl_monotonic_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void ccurl_pause(uint64_t nanoseconds) {
    struct timespec rest = {.tv_sec = nanoseconds / 1000000000u,
                            .tv_nsec = nanoseconds % 1000000000u};
    nanosleep(&rest, NULL);
}
