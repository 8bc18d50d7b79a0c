#pragma once

#include <stddef.h>

/// The file of this name that is part of the executable, and its length in bytes; NULL if there is none.
const unsigned char *_Nullable belfry_embedded_file(const char *_Nonnull name, size_t *_Nonnull count);
