/// Remembers which refusals a credential has already been given a second chance for.
///
/// One refused token can be the fault of its connection, for instance if a topic was added later;
/// the same refusal on a fresh connection is the credential's.
struct CredentialTrial: Sendable, Hashable {
    private var chances: [String: UInt64] = [:]

    /// The reaction to `row`, which came on the connection with number `connection`.
    mutating func judge(_ row: ReasonRow, connection: UInt64) -> GatewayReaction {
        guard let repeated = row.whenRepeated else { return row.reaction }
        guard let first = chances[row.reason] else {
            chances[row.reason] = connection
            return row.reaction
        }
        // All requests that were open together on one connection are refused together.
        return connection > first ? repeated : row.reaction
    }

    /// The gateway accepted something.
    mutating func acquit() {
        guard !chances.isEmpty else { return }
        chances.removeAll()
    }
}
