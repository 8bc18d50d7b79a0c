/// Remembers which refusals a credential has already been given a second chance for.
///
/// One refused token can be the fault of its connection, for instance if a topic was added later;
/// the same refusal on a fresh connection is the credential's.
struct CredentialTrial: Sendable, Hashable {
    private struct Chance: Sendable, Hashable {
        /// Connections up to this one are no fresh ones.
        var newest: UInt64
        /// How often fresh ones brought the same.
        var repeats = 0
    }

    private var chances: [String: Chance] = [:]

    /// The first time that a credential rests before it is tried again; it doubles with each trial.
    static let firstRest = Duration.seconds(4)
    /// The longest.
    static let longestRest = Duration.seconds(60)

    /// The reaction to `row`, which came on the connection with number `connection`, when `newest`
    /// was the newest.
    mutating func judge(
        _ row: ReasonRow, connection: UInt64, newest: UInt64
    ) -> GatewayReaction {
        guard let repeated = row.whenRepeated else { return row.reaction }
        guard var chance = chances[row.reason] else {
            chances[row.reason] = Chance(newest: newest)
            return row.reaction
        }
        // All requests that were open together are refused together.
        if connection > chance.newest {
            chance = Chance(newest: newest, repeats: chance.repeats + 1)
            chances[row.reason] = chance
        }
        return chance.repeats > 0 ? repeated : row.reaction
    }

    /// How long the credential rests after `row` came again.
    func rest(after row: ReasonRow) -> Duration {
        let doublings = min(max(0, (chances[row.reason]?.repeats ?? 0) - 1), 10)
        return min(Self.firstRest * (1 << doublings), Self.longestRest)
    }

    /// The gateway accepted something.
    mutating func acquit() {
        guard !chances.isEmpty else { return }
        chances.removeAll()
    }
}
