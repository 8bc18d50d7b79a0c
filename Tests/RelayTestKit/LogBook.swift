package import Logging
import Synchronization

/// Records log events of the level `info` and above as one line each.
package final class LogBook: Sendable {
    private let kept = Mutex<[String]>([])
    private let line: @Sendable (LogEvent) -> String

    /// Creates a book that records `line` of each event.
    package init(_ line: @escaping @Sendable (LogEvent) -> String) {
        self.line = line
    }

    /// Creates a book that records the level, the message, and the metadata by name.
    package convenience init() {
        self.init { event in
            let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }
                .map { " \($0.key)=\($0.value)" }
            return "\(event.level): \(event.message)" + details.joined()
        }
    }

    /// The lines that were logged so far.
    package var lines: [String] { kept.withLock { $0 } }

    /// A logger that writes into this book.
    package var logger: Logger { Logger(label: "test") { _ in Handler(book: self) } }

    private func add(_ event: LogEvent) {
        let text = line(event)
        kept.withLock { $0.append(text) }
    }

    private struct Handler: LogHandler {
        let book: LogBook
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        init(book: LogBook) {
            self.book = book
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { book.add(event) }
    }
}
