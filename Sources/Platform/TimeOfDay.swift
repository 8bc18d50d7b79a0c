import Glibc

/// The time of day: the seconds since 1970, and the nanoseconds since the last of them.
package func timeOfDay() -> (seconds: Int64, nanoseconds: Int32) {
    var moment = timespec()
    clock_gettime(CLOCK_REALTIME, &moment)
    return (Int64(moment.tv_sec), Int32(moment.tv_nsec))
}
