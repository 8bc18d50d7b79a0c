import ChangeSources
import RelayModel
import Testing

@testable import PostgresFollowing

/// Which rows are posted in one request, and which position that request confirms.
@Suite struct RowBufferTests {
    private static func row(_ operation: FollowedRow.Operation, moves: Bool = false) -> FollowedRow
    {
        var row = FollowedRow(operation, schema: "public", table: "t", key: ["id"], position: "p")
        if moves { row.before = RecordImage(["id": .integer(1)]) }
        return row
    }

    private func add(
        _ count: Int, of commit: UInt64, to buffer: inout RowBuffer, moves: Bool = false,
        bytes: Int = 10
    ) {
        for index in 0..<count {
            buffer.add(
                Self.row(.update, moves: moves),
                at: RowPlace(commit: PostgresPosition(rawValue: commit), index: index),
                bytes: bytes)
        }
    }

    @Test func `whole transactions share a request, and a larger one comes in parts`() {
        var buffer = RowBuffer()
        add(3, of: 1, to: &buffer)
        #expect(!buffer.hasSomething)
        buffer.complete(end: PostgresPosition(rawValue: 2))
        add(2, of: 5, to: &buffer)
        #expect(buffer.hasSomething && !buffer.isFull)
        let whole = buffer.take()
        #expect(whole.rows.count == 3 && whole.end == PostgresPosition(rawValue: 2))
        #expect(!buffer.hasSomething && !buffer.isEmpty)
        while !buffer.isFull { add(1, of: 5, to: &buffer) }
        let part = buffer.take()
        #expect(part.rows.count == 1000 && part.end == nil)
    }

    @Test func `a transaction as large as a request is one request`() {
        var buffer = RowBuffer()
        add(1000, of: 1, to: &buffer)
        #expect(buffer.isFull)
        buffer.complete(end: PostgresPosition(rawValue: 2))
        let batch = buffer.take()
        #expect(batch.rows.count == 1000 && batch.end == PostgresPosition(rawValue: 2))
        #expect(buffer.isEmpty && !buffer.hasSomething)
    }

    @Test(arguments: [false, true])
    func `a last row that may be one change too many waits for the next request`(isWhole: Bool) {
        var buffer = RowBuffer()
        add(999, of: 1, to: &buffer)
        add(1, of: 1, to: &buffer, moves: true)
        if isWhole { buffer.complete(end: PostgresPosition(rawValue: 2)) }
        let first = buffer.take()
        #expect(first.rows.count == 999 && first.end == nil && first.last?.index == 998)
        if !isWhole { buffer.complete(end: PostgresPosition(rawValue: 2)) }
        let second = buffer.take()
        #expect(second.rows.count == 1 && second.end == PostgresPosition(rawValue: 2))
        #expect(buffer.isEmpty)
    }

    @Test func `a row that may be two changes counts as two, and bytes fill a request too`() {
        var buffer = RowBuffer()
        add(499, of: 1, to: &buffer, moves: true)
        #expect(!buffer.isFull)
        add(1, of: 1, to: &buffer, moves: true)
        #expect(buffer.isFull)
        _ = buffer.take()
        add(2, of: 1, to: &buffer, bytes: 600_000)
        #expect(buffer.isFull)
    }

    /// A single message of the log lists all tables that one command truncated.
    @Test(arguments: [2, 3, 2500])
    func `tables truncated together go in as many requests as they need`(count: Int) {
        var buffer = RowBuffer()
        add(999, of: 1, to: &buffer)
        for index in 999..<(999 + count) {
            buffer.add(
                Self.row(.truncate),
                at: RowPlace(commit: PostgresPosition(rawValue: 1), index: index), bytes: 10)
        }
        buffer.complete(end: PostgresPosition(rawValue: 2))
        var last = -1
        while buffer.hasSomething {
            let batch = buffer.take()
            #expect(batch.rows.count <= RowBuffer.maximumChanges)
            #expect((batch.end == nil) == buffer.hasSomething)
            last += batch.rows.count
            #expect(batch.last?.index == last)
        }
        #expect(last == 998 + count)
    }

    @Test
    func `an end without rows is not confirmed before rows that fill a request`() {
        var buffer = RowBuffer()
        buffer.complete(end: PostgresPosition(rawValue: 2))
        while !buffer.isFull { add(1, of: 5, to: &buffer) }
        // Other rows may be on their way: a batch without rows would be confirmed before them.
        let batch = buffer.take()
        #expect(batch.rows.count == 1000 && batch.end == PostgresPosition(rawValue: 2))
    }
}
