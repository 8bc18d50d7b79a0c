#ifndef BELFRY_CMALLOC_H
#define BELFRY_CMALLOC_H

/* Swift's Glibc module does not include this header. */
#include <malloc.h>

#endif
