/// Remembers for which refusals a credential has already had a second chance.
///
/// A refused token can be the fault of its connection, for instance if a topic was added later. The
/// same refusal on a fresh connection is the fault of the credential.
struct CredentialTrial: Sendable, Hashable {
    private struct Chance: Sendable, Hashable {
        /// The number of the newest connection that does not count as fresh.
        var newest: UInt64
        /// How often fresh connections brought the same refusal.
        var repeats = 0
    }

    private var chances: [String: Chance] = [:]

    /// The first pause of a credential before it is tried again.
    ///
    /// It doubles with each trial.
    static let firstRest = Duration.seconds(4)
    /// The longest pause.
    static let longestRest = Duration.seconds(60)

    /// Returns the reaction to `row`, which came on the connection with number `connection`, when
    /// `newest` was the number of the newest connection.
    mutating func judge(
        _ row: ReasonRow, connection: UInt64, newest: UInt64
    ) -> GatewayReaction {
        guard let repeated = row.whenRepeated else { return row.reaction }
        guard var chance = chances[row.reason] else {
            chances[row.reason] = Chance(newest: newest)
            return row.reaction
        }
        // Requests that were open at the same time are refused together, which counts once.
        if connection > chance.newest {
            chance = Chance(newest: newest, repeats: chance.repeats + 1)
            chances[row.reason] = chance
        }
        return chance.repeats > 0 ? repeated : row.reaction
    }

    /// Returns how long the credential rests after `row` came again.
    func rest(after row: ReasonRow) -> Duration {
        let doublings = min(max(0, (chances[row.reason]?.repeats ?? 0) - 1), 10)
        return min(Self.firstRest * (1 << doublings), Self.longestRest)
    }

    /// Forgets the refusals, because the gateway accepted a push.
    mutating func acquit() {
        guard !chances.isEmpty else { return }
        chances.removeAll()
    }
}
