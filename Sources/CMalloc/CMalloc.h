#ifndef BELFRY_CMALLOC_H
#define BELFRY_CMALLOC_H

/* What Swift's module of glibc leaves out. */
#include <malloc.h>

#endif
