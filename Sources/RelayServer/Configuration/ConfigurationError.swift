/// The error of a configuration that cannot be used, with all of its problems at once.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problems, each with the key, the value and what is allowed.
    package let problems: [String]

    /// Creates an error about `problems`.
    package init(_ problems: [String]) {
        self.problems = problems
    }

    /// The problems, one a line.
    package var description: String {
        "the configuration cannot be used:\n"
            + problems.map { "  \($0)" }.joined(separator: "\n")
    }
}
