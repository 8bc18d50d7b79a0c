import Logging
import RelayModel
import Synchronization

/// Says in the log which requests were refused, and why.
///
/// What the store refuses for now it refuses to all who come meanwhile, which may be tens of
/// thousands in a second: of those there is a line for each code in ten seconds. An error of the
/// relay's own has a line for each request, because its answer says so.
///
/// Concurrency: a lock around a value.
final class RefusalLog: Sendable {
    private let lines = Mutex(QuietLines<String>())

    /// Writes a line, or counts it.
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
