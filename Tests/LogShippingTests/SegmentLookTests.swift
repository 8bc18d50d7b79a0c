import RelayTestKit
import StorageSQL
import StorageSQLite
import Testing

@testable import LogShipping

/// Segments that disappear from the destination while the copy stays.
@Suite struct SegmentLookTests {
    @Test func `a look is at the newest segments and at one older thousand in turn`() {
        var look = SegmentLook()
        #expect(look.thousands(from: 1, through: 999) == [0])
        #expect(look.thousands(from: 1, through: 1999) == [0, 1])
        #expect(look.thousands(from: 1500, through: 2999) == [1, 2])
        var turns: [UInt64] = []
        for _ in 0..<5 {
            let thousands = look.thousands(from: 2100, through: 6000)
            #expect(thousands.suffix(2) == [5, 6])
            turns += thousands.dropLast(2)
        }
        #expect(turns == [2, 3, 4, 2, 3])
        // The next copy needs no segments from before it.
        #expect(look.thousands(from: 6001, through: 6002) == [5, 6])
    }

    @Test func `a segment that was removed ends the chain before the next copy is due`()
        async throws
    {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        let chain = rig.spool.chainName
        for _ in 0..<3 {
            try await rig.append(1)
            try await round.run()
        }
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.chainName == chain)
        // The last segment is one that the copy does not need at least.
        let name = try #require(rig.destination.segments.last)
        guard case .segment(_, let number, _)? = BackupName(name) else {
            Issue.record("\(name)")
            return
        }
        try await rig.destination.remove(name)
        try await rig.append(2)
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.takeEnding() == "segment \(number) is not at memory:")
        try await round.run()
        #expect(rig.spool.chainName != nil && rig.spool.chainName != chain)
        #expect(try await ShippingRig.restored(rig.destination).head == 8)
        await rig.store.close()
    }
}
