package import Logging
package import PostgresFollowing
import Synchronization

/// Logs the state of a followed database, once for each change of state.
package final class FollowLog: Sendable {
    private struct Last {
        var word: String?
        var warning: String?
        var rows: UInt64 = 0
        var namedNobody: String?
    }

    private let logger: Logger
    private let last = Mutex(Last())

    package init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs the state if it is new.
    package func note(_ status: FollowStatus) {
        let isNew = last.withLock { last in
            defer { last.word = status.word }
            return last.word != status.word
        }
        guard isNew else { return }
        let state = Logger.Metadata.Value.string(status.word)
        switch status.state {
        case .waiting(let problem) where problem.needsSomebody:
            logger.error("\(status.sentence)", metadata: ["state": state])
        case .waiting: logger.warning("\(status.sentence)", metadata: ["state": state])
        default: logger.info("\(status.sentence)", metadata: ["state": state])
        }
    }

    /// Logs the number of new rows since the last call, and new warnings.
    package func noteProgress(_ status: FollowStatus) {
        let (concern, namedNobody) = (status.concern, status.namedNobody)
        let (rows, news) = last.withLock { last in
            defer {
                last.rows = status.rows
                (last.warning, last.namedNobody) = (concern, namedNobody)
            }
            return (
                status.rows - last.rows,
                [
                    concern == last.warning ? nil : concern,
                    namedNobody == last.namedNobody ? nil : namedNobody,
                ].compactMap { $0 }
            )
        }
        for one in news { logger.warning("\(one)", metadata: ["state": "\(status.word)"]) }
        guard rows > 0 else { return }
        var metadata: Logger.Metadata = [
            "rows": .stringConvertible(rows),
            "confirmed": "\(status.confirmed?.description ?? "-")",
            "valuesLeftOut": .stringConvertible(status.valuesLeftOut),
        ]
        metadata["behindBytes"] = status.behindBytes.map { .stringConvertible($0) }
        metadata["retainedBytes"] = status.retainedBytes.map { .stringConvertible($0) }
        logger.info("took rows of a followed database", metadata: metadata)
    }
}
