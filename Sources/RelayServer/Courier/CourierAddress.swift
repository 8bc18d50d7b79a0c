import RelayModel

/// The secret in a courier's URL, and the device token that goes with it.
///
/// The token is SHA-256 of the secret, 64 hexadecimal digits, which are base64 as well: clients
/// decode it as either. Who sees the token, as an operator does, cannot fetch with it, and the
/// relay keeps nothing from which the URL could be made again.
struct CourierAddress: Sendable {
    /// The secret, 64 hexadecimal digits.
    let secret: String
    /// The device token.
    let token: DeviceToken

    /// Makes up a new one.
    init(_ identifiers: RandomIdentifiers) {
        secret = identifiers.digits(bytes: 32)
        token = Self.token(of: secret)
    }

    /// The courier whose URL has this secret; `nil` if it cannot be one.
    init?(secret: String) {
        guard secret.utf8.count == 64, Hexadecimal.decode(secret) != nil else { return nil }
        self.secret = secret
        token = Self.token(of: secret)
    }

    private static func token(of secret: String) -> DeviceToken {
        guard let token = DeviceToken(rawValue: Secrets.verifier(of: secret)) else {
            preconditionFailure("64 hexadecimal digits are a device token")
        }
        return token
    }
}
