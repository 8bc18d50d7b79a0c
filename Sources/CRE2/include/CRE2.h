#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled regular expression. It is immutable, so several threads may match with it
/// concurrently.
typedef struct belfry_re2 belfry_re2;

/// Whether upper-case and lower-case letters match each other.
typedef enum { BELFRY_RE2_CASE_EXACT = 0, BELFRY_RE2_CASE_IGNORED = 1 } belfry_re2_case;

/// The reason why a pattern was refused.
typedef enum {
    BELFRY_RE2_OK = 0,
    /// The syntax is wrong.
    BELFRY_RE2_SYNTAX = 1,
    /// An escape is unknown. Back-references are among these.
    BELFRY_RE2_ESCAPE = 2,
    /// A `(?…` group is unknown. Look-around is among these.
    BELFRY_RE2_GROUP = 3,
    /// The compiled form would exceed its memory budget.
    BELFRY_RE2_TOO_LARGE = 4,
} belfry_re2_status;

/// Compiles `pattern` within `memory` bytes.
///
/// Returns NULL if the pattern is refused. Then `status` has the reason, and `offender` the
/// offending part of the pattern, cut to `offender_capacity` - 1 bytes and terminated by a zero
/// byte.
belfry_re2 *belfry_re2_compile(const char *pattern, size_t length, belfry_re2_case folding,
                               int64_t memory, belfry_re2_status *status, char *offender,
                               size_t offender_capacity);

/// Returns whether the whole of `text` matches. The time is proportional to the length of the text.
bool belfry_re2_matches_whole(const belfry_re2 *expression, const char *text, size_t length);

/// Returns the number of instructions of an expression. In the worst case, matching takes time
/// proportional to it times the length of the text.
size_t belfry_re2_size(const belfry_re2 *expression);

/// Frees an expression.
void belfry_re2_free(belfry_re2 *expression);

#ifdef __cplusplus
}
#endif
