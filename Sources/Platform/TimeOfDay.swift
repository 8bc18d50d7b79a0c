import Glibc

/// Returns the time of day as seconds since 1970 and the nanoseconds within the last second.
package func timeOfDay() -> (seconds: Int64, nanoseconds: Int32) {
    var moment = timespec()
    clock_gettime(CLOCK_REALTIME, &moment)
    return (Int64(moment.tv_sec), Int32(moment.tv_nsec))
}
