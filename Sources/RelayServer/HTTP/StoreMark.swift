import Crypto
import RelayModel

/// A name for a store in the tokens of clients.
///
/// It does not reveal the store's identity, from which the IDs of its pushes are computed.
struct StoreMark: Sendable, Hashable {
    /// Eight bytes in hexadecimal digits.
    let text: String

    init(_ store: UUIDBytes) {
        text = Hexadecimal.encode(
            SHA256.hash(data: Array("belfry store".utf8) + store.bytes).prefix(8))
    }
}

extension APIError {
    /// Creates the error for a client's token that can no longer be used.
    ///
    /// The client must begin again without a token (CloudKit: `changeTokenExpired`).
    static func tokenExpired(_ reason: String) -> APIError {
        APIError(
            .badRequest, "syncToken: \(reason)", details: ["changeTokenExpired": true])
    }
}
