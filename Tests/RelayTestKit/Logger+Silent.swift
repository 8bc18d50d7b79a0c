package import Logging

extension Logger {
    /// A logger of whose lines nothing is kept.
    package static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
