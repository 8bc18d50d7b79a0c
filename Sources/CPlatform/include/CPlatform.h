#pragma once

/// Runs `function(context)` on a thread of its own, detached, under a name of up to 15 characters.
/// Returns 0 or an errno.
int belfry_thread_start(void (*function)(void *context), void *context, const char *name);
