import Logging
import Synchronization

/// Logs once that other relays of a store have different settings, and once that they no longer do.
final class DisagreementLog: Sendable {
    private let told = Mutex<Set<String>>([])
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Takes the present differences, a sentence for each relay.
    func tell(_ sentences: [String]) {
        let (news, isOver) = told.withLock { told in
            let before = told
            told = Set(sentences)
            return (
                sentences.filter { !before.contains($0) }, sentences.isEmpty && !before.isEmpty
            )
        }
        for sentence in news {
            logger.warning(
                "another relay of the store has other settings", metadata: ["reason": "\(sentence)"]
            )
        }
        if isOver { logger.info("all relays of the store have the same settings again") }
    }
}
