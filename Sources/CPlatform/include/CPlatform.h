#pragma once

/// Runs `function(context)` on a thread of its own, detached, under a name of up to 15 characters.
/// Returns 0 or an errno.
int belfry_thread_start(void (*function)(void *context), void *context, const char *name);

/// Asks the processor for a line of memory that will be changed. Whatever the address is, nothing
/// else happens.
static inline void belfry_prefetch(const void *address) {
    __builtin_prefetch(address, 1);
}
