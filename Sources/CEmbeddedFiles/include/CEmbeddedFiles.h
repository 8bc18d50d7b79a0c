#pragma once

#include <stddef.h>

/// Returns the contents of the embedded file `name`, and its length in bytes; NULL if there is
/// none.
const unsigned char *_Nullable belfry_embedded_file(const char *_Nonnull name, size_t *_Nonnull count);
