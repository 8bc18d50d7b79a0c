import Gateway
import Logging
import RelayModel
import Storage
import Synchronization

/// Keeps provider tokens across a restart.
///
/// The gateway's thread stores them here, and ``write()`` writes them to the store.
///
/// A token that is not written yet is held by its key, so a newer token of the same key replaces it
/// and the buffer stays bounded.
final class ProviderTokenBuffer: Sendable {
    private struct State {
        var tokens: [ProviderTokenRecord.Key: ProviderTokenRecord]
        var unwritten: Set<ProviderTokenRecord.Key> = []
    }

    private let state: Mutex<State>
    private let minted: AsyncStream<Void>
    private let announce: AsyncStream<Void>.Continuation
    private let registry: any ProviderTokenRegistry
    private let logger: Logger

    init(registry: any ProviderTokenRegistry, logger: Logger) async throws {
        let stored = try await registry.providerTokens().map { token in
            ProviderTokenRecord(
                key: ProviderTokenRecord.Key(
                    teamID: token.teamID, keyID: token.keyID, environment: token.environment),
                token: ConcealedText(token.token), issuedAt: token.issuedAt)
        }
        state = Mutex(
            State(
                tokens: Dictionary(
                    stored.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last })))
        (minted, announce) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.registry = registry
        self.logger = logger
    }

    /// The store that the gateway's thread calls.
    var store: ProviderTokenStore {
        ProviderTokenStore(
            load: { key in self.state.withLock { $0.tokens[key] } },
            keep: { record in
                self.state.withLock { state in
                    let oldest = record.issuedAt.advanced(by: .zero - StoredProviderToken.keptFor)
                    state.tokens = state.tokens.filter { oldest <= $0.value.issuedAt }
                    state.tokens[record.key] = record
                    state.unwritten.insert(record.key)
                }
                self.announce.yield()
            })
    }

    /// Writes new tokens to the store until the task is cancelled.
    func write() async {
        for await _ in minted { await writeRest() }
    }

    /// Writes the tokens that are not written yet; called a last time after the gateway has ended.
    func writeRest() async {
        for record in takeUnwritten() {
            do {
                try await registry.saveProviderToken(
                    StoredProviderToken(
                        teamID: record.key.teamID, keyID: record.key.keyID,
                        environment: record.key.environment, token: record.token.revealed,
                        issuedAt: record.issuedAt))
            } catch {
                // The write is repeated with the next token. After a restart without the stored
                // token, the relay mints another one; this costs a request but loses nothing.
                _ = state.withLock { $0.unwritten.insert(record.key) }
                logger.warning(
                    "could not keep a provider token", metadata: ["reason": "\(error)"])
            }
        }
    }

    private func takeUnwritten() -> [ProviderTokenRecord] {
        state.withLock { state in
            defer { state.unwritten = [] }
            return state.unwritten.compactMap { state.tokens[$0] }
        }
    }
}
