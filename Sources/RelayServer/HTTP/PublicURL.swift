/// The URL at which clients reach the relay, without a slash at the end.
///
/// A relay that listens on any free port knows it only once it listens.
package struct PublicURL: Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    private let text: @Sendable () -> String

    /// Creates a URL that is computed at each use.
    init(asking text: @escaping @Sendable () -> String) {
        self.text = text
    }

    package init(_ text: String) {
        self.init(asking: { text })
    }

    package init(stringLiteral text: String) {
        self.init(text)
    }

    package var description: String { text() }
}
