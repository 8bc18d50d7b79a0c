import Logging
import RelayModel
import Synchronization

/// Logs which requests were refused, and why.
///
/// If the store refuses requests for a while, these may be tens of thousands in a second. So there
/// is one line for each code in ten seconds. An internal error has a line for each request, because
/// the answer promises it.
///
/// Concurrency: a lock protects the value.
final class RefusalLog: Sendable {
    private let lines = Mutex(QuietLines<String>())

    /// Writes a line, or counts the refusal for a later line.
    func write(_ refusal: ErrorMapping, uuid: String, at now: Timestamp, to logger: Logger) {
        var metadata: Logger.Metadata = [
            "uuid": .string(uuid), "code": .string(refusal.apiError.code.rawValue),
            "reason": .string(refusal.logReason),
        ]
        if refusal.logLevel > .debug, !refusal.isPromised {
            let kind = "\(refusal.apiError.code.rawValue) \(refusal.logLevel.rawValue)"
            let unlogged = lines.withLock { $0.take(kind, at: .seconds(now.seconds)) }
            guard let unlogged else { return }
            metadata["unloggedBefore"] = .stringConvertible(unlogged)
        }
        logger.log(level: refusal.logLevel, "refused a request", metadata: metadata)
    }
}
