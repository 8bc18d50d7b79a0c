#include "CRE2.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <new>

struct belfry_re2 {
    belfry_re2(re2::StringPiece pattern, const RE2::Options &options)
        : expression(pattern, options) {}
    RE2 expression;
};

static belfry_re2_status status_of(RE2::ErrorCode code) {
    switch (code) {
    case RE2::NoError: return BELFRY_RE2_OK;
    case RE2::ErrorBadEscape: return BELFRY_RE2_ESCAPE;
    case RE2::ErrorBadPerlOp: return BELFRY_RE2_GROUP;
    case RE2::ErrorPatternTooLarge: return BELFRY_RE2_TOO_LARGE;
    default: return BELFRY_RE2_SYNTAX;
    }
}

belfry_re2 *belfry_re2_compile(const char *pattern, size_t length, belfry_re2_case folding,
                               int64_t memory, belfry_re2_status *status, char *offender,
                               size_t offender_capacity) {
    RE2::Options options;
    options.set_encoding(RE2::Options::EncodingUTF8);
    options.set_log_errors(false);
    options.set_dot_nl(false);
    options.set_never_capture(true);
    options.set_case_sensitive(folding == BELFRY_RE2_CASE_EXACT);
    options.set_max_mem(memory);
    auto *compiled = new (std::nothrow) belfry_re2(re2::StringPiece(pattern, length), options);
    if (compiled == nullptr) {
        *status = BELFRY_RE2_TOO_LARGE;
        if (offender_capacity > 0) offender[0] = 0;
        return nullptr;
    }
    *status = status_of(compiled->expression.error_code());
    if (compiled->expression.ok()) return compiled;
    if (offender_capacity > 0) {
        const std::string &blamed = compiled->expression.error_arg();
        size_t count = std::min(blamed.size(), offender_capacity - 1);
        std::memcpy(offender, blamed.data(), count);
        offender[count] = 0;
    }
    delete compiled;
    return nullptr;
}

bool belfry_re2_matches_whole(const belfry_re2 *expression, const char *text, size_t length) {
    return RE2::FullMatch(re2::StringPiece(text, length), expression->expression);
}

size_t belfry_re2_size(const belfry_re2 *expression) {
    return static_cast<size_t>(std::max(expression->expression.ProgramSize(), 0));
}

void belfry_re2_free(belfry_re2 *expression) { delete expression; }
