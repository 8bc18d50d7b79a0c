#pragma once

/// Returns what `deploy/package` wrote into the finished executable: lines of text, terminated by a
/// zero byte.
///
/// It is empty in an executable that was not packaged, and never NULL.
const char *belfry_build_stamp(void);
