import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// A `records/modify` request whose operations are written in parts.
@Suite struct RecordPartsTests {
    private static let type: RecordType = Fixtures.identifier("Note")

    private static func edits(_ count: Int) -> [RecordEdit] {
        (0..<count).map {
            RecordEdit(
                .forceUpdate, RecordID(recordName: Fixtures.identifier("r\($0)")), type: type)
        }
    }

    private static func record(_ edit: RecordEdit, bytes: Int) -> ShadowRecord {
        let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
        return ShadowRecord(
            recordID: edit.recordID, recordType: type,
            fields: ["text": .string(String(repeating: "x", count: bytes))], created: stamp,
            modified: stamp, source: .cloudKit, position: LogPosition(1))
    }

    @Test func `all operations are applied in order, as many at a time as requested`() {
        let edits = Self.edits(5)
        var parts = RecordParts(edits)
        var sizes: [Int] = []
        while let part = parts.next(most: sizes.isEmpty ? 2 : 0) {
            sizes.append(part.count)
            parts.note(part.map { .deleted($0.recordID) })
        }
        #expect(sizes == [2, 1, 1, 1])
        let expected: [RecordEditOutcome] = edits.map { .deleted($0.recordID) }
        #expect(parts.outcomes == expected)
    }

    @Test func `applied operations are reported although a later part is refused`() throws {
        var parts = RecordParts(Self.edits(3))
        let unbegun = parts.isBegun
        let next = parts.next(most: 1)
        let first = try #require(next)
        parts.note([.deleted(first[0].recordID)])
        #expect(!unbegun && parts.isBegun)
        parts.end(.bounded(.share, reason: "too fast"))
        let more = parts.next(most: 1)
        #expect(more == nil)
        let refused = RecordEditOutcome.refused(.bounded(.share, reason: "too fast"))
        #expect(parts.outcomes == [.deleted(first[0].recordID), refused, refused])
        let error = APIError(bound: .share, reason: "too fast")
        #expect(error.code == .throttled && error.retryAfter == 1)
    }

    @Test func `an unfinished deletion continues before later operations`() throws {
        let edits = Self.edits(3)
        var parts = RecordParts(edits)
        let all = parts.next(most: 3)
        #expect(all == edits)
        let unfinished = RecordEditOutcome.refused(.unfinished)
        var room = CascadeRoom(part: 2)
        room.enter(Fixtures.identifier("child"), bytes: 1)
        parts.note(
            RecordEditsApplied(
                outcomes: [.deleted(edits[0].recordID), unfinished, unfinished], room: room))
        #expect(parts.place == room.place && parts.isBegun)
        let rest = parts.next(most: 3)
        #expect(rest == [edits[1]])
        var ended = parts
        ended.end(.bounded(.share, reason: "too fast"))
        guard case .refused(.bounded(.share, let reason)) = ended.outcomes[1] else {
            Issue.record("\(ended.outcomes)")
            return
        }
        #expect(reason.contains("send the same deletion again"))
        #expect(ended.outcomes[2] == .refused(.bounded(.share, reason: "too fast")))
        let done: [RecordEditOutcome] = edits.map { .deleted($0.recordID) }
        for index in [1, 2] {
            parts.note(RecordEditsApplied(outcomes: [done[index]], room: CascadeRoom(part: 2)))
            #expect(parts.place == nil)
        }
        let more = parts.next(most: 3)
        #expect(more == nil && parts.outcomes == done)
    }

    @Test func `the byte limit of a request is the same in parts as at once`() {
        var parts = RecordParts(Self.edits(30))
        while let part = parts.next(most: 1) {
            parts.note(part.map { .saved(Self.record($0, bytes: 1_000_000)) })
        }
        let saved = parts.outcomes.count {
            if case .saved = $0 { true } else { false }
        }
        #expect(saved == 9 && parts.outcomes.count == 30)
        #expect(
            parts.outcomes.last
                == .refused(.tooMuchAtOnce(bytes: RecordEditAllowance.maximumBytes)))
    }

    @Test func `conflicting records are returned as far as one answer holds them`() {
        var parts = RecordParts(Self.edits(30))
        while let part = parts.next(most: 2) {
            parts.note(part.map { .refused(.conflict(Self.record($0, bytes: 1_000_000))) })
        }
        let told = parts.outcomes.count {
            if case .refused(.conflict(_?)) = $0 { true } else { false }
        }
        #expect(told == 5 && parts.outcomes.count == 30)
    }
}
