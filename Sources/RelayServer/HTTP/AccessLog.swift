import Logging
import RelayModel
import Synchronization

/// The access log: one line for each request, without secrets.
///
/// A line has the parts of the path that name containers, sources and positions. For a part that
/// may be a secret or identify a person, it has the part's name in braces. It never has parameters,
/// header fields or bodies.
final class AccessLog: Sendable {
    /// The requests that are logged.
    enum Choice: String, Sendable, Hashable, CaseIterable {
        case off
        /// Those that were refused or failed.
        case refused
        case all
    }

    /// The amount of logging.
    struct Settings: Sendable, Hashable {
        /// The requests that are logged.
        var choice = Choice.off
        /// One in this many requests is logged; failures of the relay (status 500 and above) always
        /// are.
        var sample = 1
        /// The maximum number of lines in a second, apart from failures of the relay.
        var perSecond = 200
        /// The maximum number of lines in a second about failures of the relay.
        ///
        /// They have a limit of their own, so that other requests do not displace them. But a relay
        /// that fails thousands of requests must not fill the disk.
        static let failuresPerSecond = 1000
    }

    /// The content of a line.
    struct Entry: Sendable {
        var method: String
        var path: String
        var status: Int
        /// The length of the answer's body in bytes; `nil` while it is still being written.
        var bytes: Int?
        var duration: Duration
        var address: ClientAddress?
        var request: String
        var container: ContainerKey?
        var who: String?
    }

    private let settings: Settings
    private let share: Mutex<AccessShare>
    private let logger: Logger

    init(_ settings: Settings, logger: Logger) {
        self.settings = settings
        share = Mutex(AccessShare(settings))
        self.logger = logger
    }

    /// The variable parts of a path that are never secret.
    private static let openParts: Set<String> = [
        "container", "environment", "database", "source", "recordType", "position", "number",
        "delivery",
    ]

    /// Returns a path with its open parts filled in.
    ///
    /// An unknown path is not logged, because it may be a mistyped secret.
    static func path(_ place: RelayPlace?, _ parameters: [String: String]) -> String {
        guard let place else { return "unknown" }
        let parts = place.path.split(separator: "/", omittingEmptySubsequences: false)
        return parts.map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return String(part) }
            let name = String(part.dropFirst().dropLast())
            guard openParts.contains(name), let value = parameters[name] else {
                return String(part)
            }
            return value.shortened
        }.joined(separator: "/")
    }

    /// Writes a line, unless it is not wanted or there are too many.
    func write(_ entry: @autoclosure () -> Entry, status: Int, at now: Timestamp) {
        guard settings.choice != .off else { return }
        let verdict = share.withLock { $0.take(status, at: now) }
        if verdict.leftOut != .none {
            logger.info(
                "requests left out of the log",
                metadata: [
                    "count": .stringConvertible(verdict.leftOut.count),
                    "failed": .stringConvertible(verdict.leftOut.failures),
                ])
        }
        guard verdict.isWritten else { return }
        let entry = entry()
        var metadata: Logger.Metadata = [
            "method": "\(entry.method)", "path": "\(entry.path)",
            "status": .stringConvertible(entry.status),
            "ms": .stringConvertible(Self.milliseconds(entry.duration)), "uuid": "\(entry.request)",
        ]
        metadata["bytes"] = entry.bytes.map { .stringConvertible($0) }
        metadata["address"] = entry.address.map { "\($0)" }
        metadata["container"] = entry.container.map { "\($0)" }
        metadata["who"] = entry.who.map { "\($0)" }
        logger.info("request", metadata: metadata)
    }

    /// Converts to milliseconds with one decimal digit.
    private static func milliseconds(_ duration: Duration) -> Double {
        // The duration comes from the time of day, which may have been set back meanwhile.
        (max(.zero, duration) / .microseconds(100)).rounded(.down) / 10
    }
}

/// Decides which requests the access log has.
struct AccessShare: Sendable {
    /// The numbers of requests that were not logged because there were too many.
    struct LeftOut: Sendable, Hashable {
        /// Nothing was left out.
        static let none = LeftOut()
        /// The number of all of them.
        var count = 0
        /// The number of failures of the relay among them.
        var failures = 0
    }

    private let settings: AccessLog.Settings
    private var seen = 0
    private var second: Int64 = 0
    private var written = 0
    private var writtenFailures = 0
    private var leftOut = LeftOut.none

    init(_ settings: AccessLog.Settings) {
        self.settings = settings
    }

    /// Returns whether a request is logged, and what was left out earlier and not reported yet.
    mutating func take(
        _ status: Int, at now: Timestamp
    ) -> (isWritten: Bool, leftOut: LeftOut) {
        let told = begin(now.seconds)
        guard settings.choice == .all || status >= 400 else { return (false, told) }
        seen += 1
        guard status < 500 else { return (takeFailure(), told) }
        guard (seen - 1).isMultiple(of: max(1, settings.sample)) else { return (false, told) }
        guard written < settings.perSecond else {
            leftOut.count += 1
            return (false, told)
        }
        written += 1
        return (true, told)
    }

    /// Returns whether a failure of the relay is logged.
    private mutating func takeFailure() -> Bool {
        guard writtenFailures < AccessLog.Settings.failuresPerSecond else {
            leftOut.count += 1
            leftOut.failures += 1
            return false
        }
        writtenFailures += 1
        return true
    }

    private mutating func begin(_ second: Int64) -> LeftOut {
        guard second != self.second else { return .none }
        self.second = second
        written = 0
        writtenFailures = 0
        defer { leftOut = .none }
        return leftOut
    }
}
