#include "CBuildStamp.h"

// The stamp has its own section, so that packaging can fill it in without recompiling. It is
// volatile because the compiler would otherwise assume that it is always empty.
__attribute__((section("belfry_stamp"), used, retain, aligned(16)))
static const volatile char stamp[256] = {0};

const char *belfry_build_stamp(void) { return (const char *)stamp; }
