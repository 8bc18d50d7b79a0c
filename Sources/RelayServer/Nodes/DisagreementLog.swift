import Logging
import Synchronization

/// Says once what other relays of a store have set otherwise, and once that it is over.
final class DisagreementLog: Sendable {
    private let told = Mutex<Set<String>>([])
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Takes what is so now, a sentence for each relay.
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
        if isOver { logger.info("no relay of the store has other settings any more") }
    }
}
