import FoundationEssentials
package import RelayModel

/// The position of the write-ahead log after a commit, with the time of the commit.
///
/// The time is taken when the commit is durable and before the callers are answered. So everything
/// that was acknowledged before a moment is in the commits that are marked up to that moment.
package struct LogMark: Sendable, Hashable {
    /// The number of the commit's last frame, from 1, in its generation of the log.
    package let frame: Int
    /// The number of commits that the store had acknowledged.
    package let commits: Int64
    /// The last position of the relay's log.
    package let head: LogPosition
    /// The time at which it was durable; never before that of the previous mark.
    package let moment: Timestamp

    package init(frame: Int, commits: Int64, head: LogPosition, moment: Timestamp) {
        self.frame = frame
        self.commits = commits
        self.head = head
        self.moment = moment
    }
}

extension LogMark {
    /// The mark as words, separated by spaces.
    var words: String {
        "\(frame) \(commits) \(head.rawValue) \(moment.nanosecondsSince1970)"
    }

    /// Decodes ``words``; `nil` if the text is something else.
    init?(words: some StringProtocol) {
        let parts = words.split(separator: " ")
        guard parts.count == 4, let frame = Int(parts[0]), let commits = Int64(parts[1]),
            let head = UInt64(parts[2]), let moment = Int64(parts[3])
        else { return nil }
        self.init(
            frame: frame, commits: commits, head: LogPosition(head),
            moment: Timestamp(nanosecondsSince1970: moment))
    }
}

extension Timestamp {
    /// Nanoseconds since 1970, limited to the range of `Int64`, which ends in the year 2262.
    package var nanosecondsSince1970: Int64 {
        let (whole, isBeyond) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isBeyondToo) = whole.addingReportingOverflow(Int64(nanoseconds))
        return isBeyond || isBeyondToo ? (seconds < 0 ? .min : .max) : sum
    }

    package init(nanosecondsSince1970 count: Int64) {
        let (seconds, rest) = count.quotientAndRemainder(dividingBy: 1_000_000_000)
        self.init(
            seconds: rest < 0 ? seconds - 1 : seconds,
            nanoseconds: Int32(rest < 0 ? rest + 1_000_000_000 : rest))
    }
}
