import Logging
import RelayModel
import Storage
import Synchronization
import Testing

@testable import RelayServer

/// What the log says of refused requests, however many there are.
@Suite struct RefusalLogTests {
    private final class Lines: Sendable {
        private let kept = Mutex<[String]>([])

        var all: [String] { kept.withLock { $0 } }

        func add(_ line: String) { kept.withLock { $0.append(line) } }
    }

    private struct LineHandler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        init(_ lines: Lines) {
            self.lines = lines
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let details = ["code", "unloggedBefore"].map { name in
                event.metadata?[name].map { "\($0)" } ?? "-"
            }
            lines.add("\(event.level) \(details.joined(separator: " "))")
        }
    }

    private struct Fault: Error {}

    private let lines = Lines()
    private let log = RefusalLog()

    private func refuse(_ error: any Error, at second: Int64) {
        let logger = Logger(label: "test") { [lines] _ in LineHandler(lines) }
        log.write(
            ErrorMapping(error), uuid: "u", at: Timestamp(seconds: second), to: logger)
    }

    @Test func `what is refused to all who come is said once in a while`() {
        for second in [100, 100, 109, 110, 111] as [Int64] {
            refuse(StorageError.bounded(.share, reason: "\(second) wait"), at: second)
        }
        #expect(lines.all == ["warning THROTTLED 0", "warning THROTTLED 2"])
        // Another is no less heard, nor one after a clock was set back.
        refuse(StorageError.noRoom("a disk"), at: 111)
        refuse(StorageError.bounded(.share, reason: "1 waits"), at: 50)
        #expect(lines.all.suffix(2) == ["error TRY_AGAIN_LATER 0", "warning THROTTLED 1"])
    }

    @Test func `an error of the relay's own has a line for each that was told so`() {
        for _ in 0..<3 { refuse(Fault(), at: 100) }
        #expect(lines.all == Array(repeating: "error INTERNAL_ERROR -", count: 3))
    }
}
