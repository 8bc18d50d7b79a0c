import Crypto
package import RelayModel

/// A secret that a source and the relay share.
///
/// Printing it shows only a placeholder.
package struct SourceSecret: Sendable, Hashable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The secret as agreed with the sender, including the prefix (`whsec_`) if the scheme has one.
    package let value: String
    /// When the secret expires; `nil` means never.
    ///
    /// While a secret is being replaced, the former one has an end and the new one has none.
    package let until: Timestamp?

    package init(_ value: String, until: Timestamp? = nil) {
        self.value = value
        self.until = until
    }

    /// The maximum size of a secret.
    ///
    /// No header carries a longer one, and all secrets of a container are in memory at once.
    private static let maximumBytes = 8192

    /// Returns the rule for the length of a secret, if `text` breaks it.
    static func ruleBroken(byLengthOf text: String) -> String? {
        text.utf8.count > maximumBytes ? "must be at most \(maximumBytes) bytes" : nil
    }

    /// The text that is shown instead of a secret.
    static let placeholder = "(hidden)"

    /// The placeholder.
    package var description: String { Self.placeholder }

    /// The placeholder.
    package var debugDescription: String { description }

    /// A mirror without children.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Returns whether the secret is accepted at `moment`.
    func isLive(at moment: Timestamp) -> Bool {
        until.map { moment < $0 } ?? true
    }
}

extension ConstantTime {
    /// Returns whether both texts are equal.
    ///
    /// Their lengths do not affect the time, because digests are compared.
    static func equal(_ left: String, _ right: String) -> Bool {
        equal(
            Array(SHA256.hash(data: Array(left.utf8))),
            Array(SHA256.hash(data: Array(right.utf8))))
    }
}
