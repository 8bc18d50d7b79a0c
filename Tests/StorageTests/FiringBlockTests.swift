import RelayModel
import RelayTestKit
import Testing

@testable import Storage

/// A block of firings decodes to what was encoded, and damage is detected.
@Suite struct FiringBlockTests {
    private static func note(
        _ position: UInt64, _ fired: [UInt64], unreached: [UnreachedFiring] = [],
        errors: [UInt64] = []
    ) -> FiringNote {
        FiringNote(
            position: LogPosition(position), at: Sample.moment(Int64(position)), fired: fired,
            unreached: unreached, errors: errors)
    }

    @Test(arguments: Seeds.all)
    func `random notes are added up as they were encoded`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            var notes: [FiringNote] = []
            var expected: [UInt64: SubscriptionHealth] = [:]
            var position: UInt64 = 1
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                position += UInt64.random(in: 1...9, using: &random)
                let fired = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                    UInt64.random(in: 1...1 << 40, using: &random)
                }
                let note = Self.note(position, Set(fired).sorted(), errors: [position])
                notes.append(note)
                for serial in note.fired {
                    expected[serial, default: SubscriptionHealth()].fired += 1
                    expected[serial]?.lastFired = .init(
                        position: note.position, at: note.at, detail: .init())
                }
                expected[position, default: SubscriptionHealth()].errors += 1
                expected[position]?.lastError = .init(
                    position: note.position, at: note.at, detail: .init())
            }
            let block = try #require(FiringBlock(notes, ends: []))
            #expect(block.count == notes.reduce(0) { $0 + $1.count })
            var sums: [UInt64: SubscriptionHealth] = [:]
            #expect(FiringBlock.add(block.body, to: &sums))
            #expect(sums == expected)
            // A block that was cut off anywhere is refused.
            let cut = block.body.prefix(Int.random(in: 0..<block.body.count, using: &random))
            #expect(!FiringBlock.add(cut, to: &sums))
        }
    }

    @Test func `a thousand firings take two bytes each`() throws {
        let block = try #require(
            FiringBlock([Self.note(5, Array(stride(from: 70, to: 70_070, by: 70)))], ends: []))
        #expect(block.body.count < 2050)
    }

    @Test func `empty notes make no block, and hostile lengths are refused`() {
        #expect(FiringBlock([Self.note(1, [])], ends: []) == nil)
        var sums: [UInt64: SubscriptionHealth] = [:]
        for body: [UInt8] in [
            [], [2], [1], [1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [1, 1, 2, 2, 0xFF, 0x7F],
            [1, 0, 1, 0xFF, 0x7F],
        ] {
            #expect(!FiringBlock.add(body, to: &sums))
        }
        #expect(sums.isEmpty)
    }
}
