import RelayModel

/// The names of a web courier, each of which is the SHA-256 of the one before.
///
/// They are the ticket, which its client has as `apnsToken`; the secret in its URL; and its device
/// token. Each is 64 hexadecimal digits, which are valid base64 too: clients decode them as either.
/// The relay stores only the last one. So an operator or a reader of the store, who sees it, can
/// neither fetch nor register. A client that registers its ticket in another container gets the URL
/// again, which CloudKit JS 2 needs.
struct CourierAddress: Sendable {
    /// The secret in the URL.
    let secret: String
    /// The device token.
    let token: DeviceToken

    /// Returns a new ticket.
    static func newTicket(_ identifiers: RandomIdentifiers) -> DeviceToken {
        deviceToken(identifiers.digits(bytes: 32))
    }

    /// Creates the address from a ticket.
    init(ticket: DeviceToken) {
        secret = Secrets.verifier(of: ticket.rawValue)
        token = Self.token(of: secret)
    }

    /// Creates the address from the secret in a URL; `nil` if the secret is not well formed.
    init?(secret: String) {
        guard secret.utf8.count == 64, Hexadecimal.decode(secret) != nil else { return nil }
        self.secret = secret
        token = Self.token(of: secret)
    }

    private static func token(of secret: String) -> DeviceToken {
        deviceToken(Secrets.verifier(of: secret))
    }

    private static func deviceToken(_ digits: String) -> DeviceToken {
        guard let token = DeviceToken(rawValue: digits) else {
            preconditionFailure("64 hexadecimal digits are a device token")
        }
        return token
    }
}
