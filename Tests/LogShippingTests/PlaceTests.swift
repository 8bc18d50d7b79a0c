import RelayModel
import RelayTestKit
import StorageSQL
import StorageSQLite
import Testing

@testable import LogShipping

/// The note at the place of the backups, which names the store that they belong to.
@Suite struct PlaceTests {
    @Test func `an empty folder below a disk that is not mounted gets nothing`() async throws {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        let (chain, disk) = (rig.spool.chainName, rig.destination.objects)
        rig.destination.empty()
        for _ in 0..<3 {
            try await rig.append(2)
            let failure = await #expect(throws: ShippingFailure.self) { try await round.run() }
            #expect(failure?.description.contains("mount the disk that it is on") == true)
            #expect(rig.destination.objects.isEmpty)
        }
        rig.destination.hold(disk)
        try await round.run()
        #expect(rig.spool.takeEnding() == nil && rig.spool.chainName == chain)
        #expect(try await ShippingRig.restored(rig.destination).head == 9)
        await rig.store.close()
    }

    @Test func `an idle store does not make a new copy while the disk is not mounted`()
        async throws
    {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        let (chain, disk) = (rig.spool.chainName, rig.destination.objects)
        // It is time to look for the copy, and then for a new one.
        for wait in [.seconds(601), rig.shipper.settings.baseInterval] {
            rig.destination.empty()
            rig.clock.advance(by: wait)
            await #expect(throws: ShippingFailure.self) { try await round.run() }
            #expect(rig.destination.objects.isEmpty)
            rig.destination.hold(disk)
            try await round.run()
            #expect(rig.spool.takeEnding() == nil && rig.spool.chainName == chain)
        }
        #expect(rig.shipper.status.bases == 2)
        await rig.store.close()
    }

    @Test func `a stop while the disk is not mounted leaves the rest to the next start`()
        async throws
    {
        let rig = try await ShippingRig()
        _ = try await rig.firstRound(after: 3)
        let (chain, disk) = (rig.spool.chainName, rig.destination.objects)
        rig.destination.empty()
        try await rig.append(2)
        await rig.store.close()
        await rig.shipper.finish()
        #expect(rig.destination.objects.isEmpty)
        rig.destination.hold(disk)
        let again = try await ShippingRig(at: rig.home, clock: rig.clock, to: rig.destination)
        var next = ShippingRound(again.shipper)
        try await next.run()
        #expect(again.spool.takeEnding() == nil && again.spool.chainName == chain)
        #expect(try await ShippingRig.restored(rig.destination).head == 5)
        await again.store.close()
    }

    @Test func `a place that another store has taken meanwhile gets nothing`() async throws {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 1)
        let other: [String: [UInt8]] = [
            BackupName.store: Array("belfry-backup 1\nstore another\n".utf8)
        ]
        rig.destination.hold(other)
        try await rig.append(1)
        let failure = await #expect(throws: ShippingFailure.self) { try await round.run() }
        #expect(failure?.description.contains("holds the backups of the store another") == true)
        #expect(rig.destination.objects == other)
        await rig.store.close()
    }

    @Test func `a missing note is waited for by the time since it was first missed`() {
        var absence = NoteAbsence()
        // After it was long, the wait begins anew, also with a clock that was set back.
        let found = [0, 599, 600, 601, 0, 600].map { seconds in
            absence.isLong(at: Timestamp(seconds: 1_000_000 + seconds))
        }
        #expect(found == [false, false, true, false, false, true])
    }
}
