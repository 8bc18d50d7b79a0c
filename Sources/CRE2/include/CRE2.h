#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled regular expression. It is immutable: any number of threads may match with it at once.
typedef struct belfry_re2 belfry_re2;

/// Whether letters of both cases match each other.
typedef enum { BELFRY_RE2_CASE_EXACT = 0, BELFRY_RE2_CASE_IGNORED = 1 } belfry_re2_case;

/// Why a pattern was refused.
typedef enum {
    BELFRY_RE2_OK = 0,
    /// The syntax is wrong.
    BELFRY_RE2_SYNTAX = 1,
    /// An escape is unknown; back-references are among these.
    BELFRY_RE2_ESCAPE = 2,
    /// A `(?…` group is unknown; look-around is among these.
    BELFRY_RE2_GROUP = 3,
    /// The compiled form would exceed its memory budget.
    BELFRY_RE2_TOO_LARGE = 4,
} belfry_re2_status;

/// Compiles `pattern` within `memory` bytes.
///
/// Returns NULL if it is refused, and then fills in `status` and the part of the pattern that is to
/// blame, cut to `offender_capacity` - 1 bytes and ended by a zero byte.
belfry_re2 *belfry_re2_compile(const char *pattern, size_t length, belfry_re2_case folding,
                               int64_t memory, belfry_re2_status *status, char *offender,
                               size_t offender_capacity);

/// Whether the whole of `text` matches; takes time proportional to its length.
bool belfry_re2_matches_whole(const belfry_re2 *expression, const char *text, size_t length);

/// The number of instructions of an expression: matching takes time proportional to it times the
/// length of the text, at the worst.
size_t belfry_re2_size(const belfry_re2 *expression);

/// Frees an expression.
void belfry_re2_free(belfry_re2 *expression);

#ifdef __cplusplus
}
#endif
