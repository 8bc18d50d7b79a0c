#include "CBuildStamp.h"

// A section of its own, so that packaging can fill it without compiling anything anew. Volatile: the
// compiler would otherwise conclude that it is always empty.
__attribute__((section("belfry_stamp"), used, retain, aligned(16)))
static const volatile char stamp[256] = {0};

const char *belfry_build_stamp(void) { return (const char *)stamp; }
