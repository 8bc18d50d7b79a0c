/// How clients reach the relay, without a slash at the end.
///
/// A relay that takes any free port knows it only once it listens.
package struct PublicURL: Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    private let text: @Sendable () -> String

    /// An URL that is asked for each time.
    init(asking text: @escaping @Sendable () -> String) {
        self.text = text
    }

    /// An URL that is the same from the beginning.
    package init(_ text: String) {
        self.init(asking: { text })
    }

    package init(stringLiteral text: String) {
        self.init(text)
    }

    package var description: String { text() }
}
