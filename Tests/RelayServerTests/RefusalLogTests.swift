import Logging
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// How refused requests are logged, however many there are.
@Suite struct RefusalLogTests {
    private struct Fault: Error {}

    private let book = LogBook { event in
        let details = ["code", "unloggedBefore"].map { name in
            event.metadata?[name].map { "\($0)" } ?? "-"
        }
        return "\(event.level) \(details.joined(separator: " "))"
    }
    private let log = RefusalLog()

    private func refuse(_ error: any Error, at second: Int64) {
        log.write(
            ErrorMapping(error), uuid: "u", at: Timestamp(seconds: second), to: book.logger)
    }

    @Test func `a refusal that all callers get is logged once in a while`() {
        for second in [100, 100, 109, 110, 111] as [Int64] {
            refuse(StorageError.bounded(.share, reason: "\(second) wait"), at: second)
        }
        #expect(book.lines == ["warning THROTTLED 0", "warning THROTTLED 2"])
        // Another refusal is logged at once, and so is one after the clock was set back.
        refuse(StorageError.noRoom("a disk"), at: 111)
        refuse(StorageError.bounded(.share, reason: "1 waits"), at: 50)
        #expect(book.lines.suffix(2) == ["error TRY_AGAIN_LATER 0", "warning THROTTLED 1"])
    }

    @Test func `an internal error is logged for each caller`() {
        for _ in 0..<3 { refuse(Fault(), at: 100) }
        #expect(book.lines == Array(repeating: "error INTERNAL_ERROR -", count: 3))
    }
}
