import Crypto
package import RelayModel

/// A secret that a source and the relay share; nothing that prints it shows it.
package struct SourceSecret: Sendable, Hashable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The secret as it was agreed upon, with its prefix (`whsec_`) where the scheme has one.
    package let value: String
    /// When it ceases to be accepted; `nil` means never.
    ///
    /// While a secret is being replaced, the older one has an end and the newer one has none.
    package let until: Timestamp?

    package init(_ value: String, until: Timestamp? = nil) {
        self.value = value
        self.until = until
    }

    /// No header carries a longer one, and all of a container's are in memory at once.
    private static let maximumBytes = 8192

    /// What the length of a secret must be, if that of `text` is not that.
    static func ruleBroken(byLengthOf text: String) -> String? {
        text.utf8.count > maximumBytes ? "must be at most \(maximumBytes) bytes" : nil
    }

    /// What stands in the place of a secret where a source is shown.
    static let placeholder = "(hidden)"

    /// A placeholder.
    package var description: String { Self.placeholder }

    /// A placeholder.
    package var debugDescription: String { description }

    /// A mirror without children.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Whether the secret is accepted at `moment`.
    func isLive(at moment: Timestamp) -> Bool {
        until.map { moment < $0 } ?? true
    }
}

extension ConstantTime {
    /// Whether both are the same text; the length of neither shows, since digests are compared.
    static func equal(_ left: String, _ right: String) -> Bool {
        equal(
            Array(SHA256.hash(data: Array(left.utf8))),
            Array(SHA256.hash(data: Array(right.utf8))))
    }
}
