import Gateway
import Logging
import RelayModel
import Storage
import Synchronization

/// Keeps provider tokens over a restart: the gateway's thread leaves them here, and ``write()``
/// carries them to the store.
final class ProviderTokenBox: Sendable {
    private let tokens: Mutex<[ProviderTokenRecord.Key: ProviderTokenRecord]>
    private let minted: AsyncStream<ProviderTokenRecord>
    private let announce: AsyncStream<ProviderTokenRecord>.Continuation
    private let registry: any Registry
    private let logger: Logger

    init(registry: any Registry, logger: Logger) async throws {
        let stored = try await registry.providerTokens().map { token in
            ProviderTokenRecord(
                key: ProviderTokenRecord.Key(
                    teamID: token.teamID, keyID: token.keyID, environment: token.environment),
                token: ConcealedText(token.token), issuedAt: token.issuedAt)
        }
        tokens = Mutex(
            Dictionary(stored.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last }))
        // A token is minted about once an hour for each key; older ones are of no use.
        (minted, announce) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
        self.registry = registry
        self.logger = logger
    }

    /// What the gateway's thread calls.
    var keeper: ProviderTokenKeeper {
        ProviderTokenKeeper(
            load: { key in self.tokens.withLock { $0[key] } },
            keep: { record in
                self.tokens.withLock { $0[record.key] = record }
                self.announce.yield(record)
            })
    }

    /// Writes minted tokens to the store until the task is cancelled.
    func write() async {
        for await record in minted {
            do {
                try await registry.saveProviderToken(
                    StoredProviderToken(
                        teamID: record.key.teamID, keyID: record.key.keyID,
                        environment: record.key.environment, token: record.token.revealed,
                        issuedAt: record.issuedAt))
            } catch {
                // A restart mints another one: a nuisance, no loss.
                logger.warning(
                    "could not keep a provider token", metadata: ["reason": "\(error)"])
            }
        }
    }
}
