/// Why the relay does not start: everything that is wrong with the configuration, at once.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problems, each with key, value and what is allowed.
    package let problems: [String]

    /// Creates an error about `problems`.
    package init(_ problems: [String]) {
        self.problems = problems
    }

    /// One problem a line.
    package var description: String {
        "the configuration cannot be used:\n"
            + problems.map { "  \($0)" }.joined(separator: "\n")
    }
}
