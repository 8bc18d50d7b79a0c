#pragma once

/// What `deploy/package` wrote into the finished executable: lines of text that end with a zero.
///
/// Empty in an executable that was only built. It is never NULL.
const char *belfry_build_stamp(void);
