import RelayModel

/// The names of a web courier, each made of the one before by SHA-256: the ticket, which is the
/// `apnsToken` that its client has; the secret in its URL; and its device token.
///
/// Each is 64 hexadecimal digits, which are base64 as well: clients decode them as either. The
/// relay keeps the last alone, so that whoever sees it, as an operator or a reader of the store
/// does, can neither fetch nor register. A client that registers its ticket in another container
/// is told the URL again, as CloudKit JS 2 needs.
struct CourierAddress: Sendable {
    /// The secret in the URL.
    let secret: String
    /// The device token.
    let token: DeviceToken

    /// A ticket that nobody has yet.
    static func newTicket(_ identifiers: RandomIdentifiers) -> DeviceToken {
        deviceToken(identifiers.digits(bytes: 32))
    }

    /// The courier of a ticket.
    init(ticket: DeviceToken) {
        secret = Secrets.verifier(of: ticket.rawValue)
        token = Self.token(of: secret)
    }

    /// The courier whose URL has this secret; `nil` if it cannot be one.
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
