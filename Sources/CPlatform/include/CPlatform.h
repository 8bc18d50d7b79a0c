#pragma once

/// Runs `function(context)` on a new, detached thread with a name of up to 15 characters. Returns 0
/// or an errno.
int belfry_thread_start(void (*function)(void *context), void *context, const char *name);

/// Prefetches the cache line at `address` for writing. Any address is allowed; an invalid one has
/// no effect.
static inline void belfry_prefetch(const void *address) {
    __builtin_prefetch(address, 1);
}

/// Sends what the socket takes at once, without waiting and without a signal. Returns the number of
/// bytes, or -1 with the reason in errno.
long belfry_send(int socket, const void *bytes, unsigned long count);
