import RelayModel
import Storage
import Testing

/// Whether a saved state can be brought up to date from a log, or belongs to another log.
@Suite struct LogPlaceTests {
    private static let place = LogPlace(
        store: UUIDBytes(high: 1, low: 1), timeline: "1", position: LogPosition(7),
        appendedAt: Timestamp(seconds: 5))

    private func fault(
        settled: UInt64 = 9, before: (inout LogPlace) -> Void = { _ in },
        there change: (inout LogPlace) -> Void
    ) -> StateFault? {
        var (place, there) = (Self.place, Self.place)
        before(&place)
        change(&there)
        return place.fault(on: there, settled: LogPosition(settled))
    }

    @Test func `the same entry at the same position is the same log`() {
        #expect(fault { _ in } == nil)
        // A standby server that had the whole log was promoted.
        #expect(fault { $0.timeline = "2" } == nil)
        #expect(fault(settled: 7) { _ in } == nil)
    }

    @Test func `another store, or a log that had lost its end, is another log`() {
        #expect(fault { $0.store = UUIDBytes(high: 1, low: 2) } == .otherStore)
        #expect(fault(settled: 6) { _ in } == .otherHistory)
        // The log has grown again, beyond the position.
        #expect(fault { $0.appendedAt = Timestamp(seconds: 6) } == .otherHistory)
    }

    @Test func `without the entry only the same server counts as the same log`() {
        #expect(fault { $0.appendedAt = nil } == nil)
        #expect(fault { ($0.appendedAt, $0.timeline) = (nil, "2") } == .otherHistory)
        #expect(
            fault(before: { $0.appendedAt = nil }, there: { $0.timeline = "2" }) == .otherHistory)
        #expect(fault(before: { $0.appendedAt = nil }, there: { _ in }) == nil)
    }
}
