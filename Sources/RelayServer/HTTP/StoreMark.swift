import Crypto
import RelayModel

/// Names a store in what clients keep of it, without telling the identity itself, of which the
/// IDs of its pushes are made.
struct StoreMark: Sendable, Hashable {
    /// Eight bytes in hexadecimal digits.
    let text: String

    init(_ store: UUIDBytes) {
        text = Hexadecimal.encode(
            SHA256.hash(data: Array("belfry store".utf8) + store.bytes).prefix(8))
    }
}

extension APIError {
    /// A token that clients keep is of no use any more: they begin again from nothing (CloudKit:
    /// `changeTokenExpired`).
    static func tokenExpired(_ reason: String) -> APIError {
        APIError(
            .badRequest, "syncToken: \(reason)", details: ["changeTokenExpired": true])
    }
}
