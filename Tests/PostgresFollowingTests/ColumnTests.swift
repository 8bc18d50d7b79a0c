import Testing

@testable import PostgresFollowing

/// Answers of a server that only claims to be PostgreSQL.
@Suite struct ColumnTests {
    @Test func `a missing column reads as NULL`() {
        let row: [String?] = ["a", nil]
        #expect(row.text(0) == "a")
        #expect([1, 2, 7, -1].allSatisfy { row.text($0) == nil })
        let empty: [String?] = []
        #expect(empty.text(0) == nil)
    }
}
