import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import LogShipping

/// What a restore refuses if backups are damaged or incomplete.
@Suite struct RestoringTests {
    /// Returns a destination with one copy and some segments, and the moments at which its changes
    /// were acknowledged.
    private static func shipped() async throws -> (MemoryDestination, [Timestamp]) {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.clock.advance(by: .seconds(1))
        var moments: [Timestamp] = []
        for _ in 0..<4 {
            moments += try await rig.append(4)
            try await round.run()
        }
        await rig.store.close()
        return (rig.destination, moments)
    }

    /// Returns a destination with two copies in one chain of eight changes, and the log since the
    /// first copy.
    private static func shippedTwice() async throws -> MemoryDestination {
        let rig = try await ShippingRig { $0.baseInterval = .seconds(60) }
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        try await rig.append(4)
        rig.clock.advance(by: .seconds(61))
        try await round.run()
        try await rig.append(4)
        try await round.run()
        await rig.store.close()
        return rig.destination
    }

    @Test(arguments: ["/part-", "/whole-"])
    func `a damaged copy is passed over for an earlier one without a loss`(
        kind: String
    ) async throws {
        let destination = try await Self.shippedTwice()
        let bases = Catalogue(Array(destination.objects.keys)).bases
        #expect(bases.map(\.number) == [1, 2])
        let last = try #require(bases.last)
        let sound = try await ShippingRig.restored(destination)
        #expect(sound.head == 8 && sound.outcome.base == last && sound.outcome.passedOver == [])
        let names = destination.objects.keys.filter {
            $0.contains("/base-000000000002\(kind)")
        }
        let name = try #require(names.max())
        destination.change(name) { $0[20] ^= 1 }
        for moment in [nil, Timestamp.latest] {
            let (head, outcome) = try await ShippingRig.restored(destination, asOf: moment)
            #expect(head == 8)
            #expect(outcome.base == bases[0])
            #expect(
                outcome.passedOver
                    == ["memory:/\(name) is damaged: its contents do not match its checksum"])
        }
        // Without the log between the two copies, the earlier copy reaches less far, and the
        // refusal offers that.
        let gone = try #require(
            Catalogue(destination.segments).segments[last.chain]?
                .first { $0.sequence == bases[0].reach.last + 1 })
        try await destination.remove(gone.name)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
        let words = refusal?.description ?? ""
        #expect(words.contains("segment \(gone.sequence) of the chain"), "\(words)")
        let offer = bases[0].reach.moment
        #expect(words.contains("with --at \(offer.iso8601), but what was"), "\(words)")
        #expect(try await ShippingRig.restored(destination, asOf: offer).head == 0)
    }

    @Test func `a damaged segment is refused by name, and the state before it is offered`()
        async throws
    {
        let (destination, moments) = try await Self.shipped()
        let name = try #require(destination.segments.dropLast().last)
        let rest = Catalogue(destination.objects.keys.filter { $0 != name })
        let offer = try #require(rest.end(of: rest.bases[0])?.moment)
        for place in [10, 700, 5000] {
            destination.change(name) { $0[place] ^= 4 }
            let refusal = await #expect(throws: BackupRefusal.self) {
                try await ShippingRig.restored(destination)
            }
            #expect(
                refusal?.description
                    == "memory:/\(name) is damaged: its contents do not match its checksum; it can "
                    + "be restored up to \(offer.iso8601), with --at \(offer.iso8601), but what "
                    + "was committed after that is then lost")
            let (head, outcome) = try await ShippingRig.restored(destination, asOf: offer)
            #expect(head == UInt64(moments.count { $0 <= offer }) && outcome.mark.moment == offer)
            destination.change(name) { $0[place] ^= 4 }
        }
        #expect(try await ShippingRig.restored(destination).head == 16)
    }

    @Test func `a damaged part of a copy is refused by name`() async throws {
        let (destination, _) = try await Self.shipped()
        let name = try #require(destination.objects.keys.filter { $0.contains("/part-") }.min())
        destination.change(name) { $0[3000] ^= 1 }
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
        #expect(refusal?.description.contains("\(name) is damaged") == true)
    }

    @Test func `a copy with a missing part is recognised by the names alone`() async throws {
        let (destination, _) = try await Self.shipped()
        let reading = BackupReading(destination)
        let whole = try await reading.catalogue()
        let base = try #require(whole.bases.first)
        #expect(try await reading.lack(of: base, in: whole) == nil)
        let parts = destination.objects.keys.filter { $0.contains("/part-") }
        for part in [parts.min(), parts.max()] {
            let part = try #require(part)
            let bytes = try #require(destination.objects[part])
            try await destination.remove(part)
            let lack = try await reading.lack(of: base, in: try await reading.catalogue())
            #expect(lack?.description == "memory:/\(part) is missing")
            try await destination.put(part, bytes)
        }
    }

    @Test func `a missing segment is named, and the state before it can be restored`() async throws
    {
        let (destination, moments) = try await Self.shipped()
        let all = Catalogue(Array(destination.objects.keys))
        let base = try #require(all.bases.first)
        let gone = try #require(all.segments[base.chain]?.dropLast().last)
        try await destination.remove(gone.name)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
        let words = refusal?.description ?? ""
        #expect(words.contains("segment \(gone.sequence) of the chain \(base.chain) is missing"))
        #expect(words.contains("it can be restored up to "))
        await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination, asOf: moments.last)
        }
        #expect(try await ShippingRig.restored(destination, asOf: moments[3]).head == 4)
        let left = Catalogue(Array(destination.objects.keys))
        #expect(left.end(of: base)?.missing == gone.sequence)
    }

    @Test func `the reach of a restore is judged by names and manifests`() async throws {
        let (destination, _) = try await Self.shipped()
        let reading = BackupReading(destination)
        let all = try await reading.catalogue()
        let base = try #require(all.bases.first)
        let end = try #require(all.end(of: base)?.moment)
        #expect(try await reading.reach() == .restorable(until: end, flaw: nil))
        // Segments after a missing one do not extend the reach.
        let segments = try #require(all.segments[base.chain])
        let gone = try #require(segments.dropLast().last)
        let bytes = try #require(destination.objects[gone.name])
        try await destination.remove(gone.name)
        let rest = try await reading.catalogue()
        let before = try #require(rest.end(of: base)?.moment)
        #expect(before < end)
        let missing = "segment \(gone.sequence) of the chain \(base.chain) is missing"
        #expect(try await reading.reach() == .restorable(until: before, flaw: missing))
        try await destination.put(gone.name, bytes)
        let part = try #require(destination.objects.keys.filter { $0.contains("/part-") }.max())
        try await destination.remove(part)
        #expect(try await reading.reach() == .none(reason: "memory:/\(part) is missing"))
        #expect(
            try await BackupReading(MemoryDestination()).reach()
                == .none(reason: "there is no whole copy"))
    }

    /// Returns `moment` as a command receives it: shown to the millisecond, and including all of
    /// that millisecond.
    private static func shown(_ moment: Timestamp) throws -> Timestamp {
        try #require(Timestamp(iso8601: moment.iso8601)).advanced(by: .nanoseconds(999_999))
    }

    @Test(arguments: [true, false])
    func `the offered moment can be passed back as it is shown`(isMissing: Bool) async throws {
        let (destination, moments) = try await Self.shipped()
        let name = try #require(destination.segments.dropLast().last)
        if isMissing {
            try await destination.remove(name)
        } else {
            destination.change(name) { $0[700] ^= 4 }
        }
        let rest = Catalogue(destination.objects.keys.filter { $0 != name })
        let offer = try #require(rest.end(of: rest.bases[0])?.moment)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
        #expect(refusal?.description.contains("with --at \(offer.iso8601), but") == true)
        let (head, outcome) = try await ShippingRig.restored(
            destination, asOf: try Self.shown(offer))
        #expect(head == UInt64(moments.count { $0 <= offer }) && outcome.mark.moment == offer)
        let next = offer.advanced(by: .milliseconds(1))
        await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination, asOf: next)
        }
    }

    @Test func `a moment that no chain has is refused, and the last one before it is offered`()
        async throws
    {
        let rig = try await ShippingRig(spoolBytes: 60 * 4120)
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.clock.advance(by: .seconds(1))
        try await rig.append(2)
        try await round.run()
        // More segments wait than the spool may hold: it drops them, and a new copy is made later.
        rig.destination.fail(DestinationFailure(.away, "nobody answers"))
        let moments = try await rig.append(60)
        #expect(rig.spool.takeEnding() != nil)
        rig.destination.fail(nil)
        try await round.run()
        await rig.store.close()
        let catalogue = Catalogue(Array(rig.destination.objects.keys))
        let (first, last) = (
            try #require(catalogue.bases.first), try #require(catalogue.bases.last)
        )
        #expect(first.chain != last.chain)
        let end = try #require(catalogue.end(of: first)?.moment)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(rig.destination, asOf: moments[30])
        }
        #expect(
            refusal?.description
                == "memory:: the chain \(first.chain) ends at \(end.iso8601), and the next copy "
                + "was made at \(last.reach.moment.iso8601): what was committed in between is "
                + "missing; it can be restored up to \(end.iso8601), with --at \(end.iso8601), but "
                + "what was committed after that is then lost")
        let (head, outcome) = try await ShippingRig.restored(
            rig.destination, asOf: try Self.shown(end))
        #expect(head == 2 && outcome.later == last.reach.moment)
        let whole = try await ShippingRig.restored(rig.destination)
        #expect(whole.head == 62 && whole.outcome.later == nil)
    }

    @Test func `what a lost write-ahead log held is in the next copy`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        try FileManager.default.removeItem(atPath: rig.home.path + "-wal")
        var taken: UInt64 = 0
        do {
            while taken < 100 {
                try await rig.append(1)
                taken += 1
            }
        } catch is StorageError {}
        #expect(taken < 40)
        await rig.store.close()
        // The spool could not copy all that the log held, so the chain cannot go on.
        #expect(rig.spool.chainName == nil)
        let again = try await ShippingRig(at: rig.home, clock: rig.clock, to: rig.destination)
        #expect(again.spool.chainName == nil)
        var next = ShippingRound(again.shipper)
        try await next.run()
        #expect(try await ShippingRig.restored(rig.destination).head == taken)
        await again.store.close()
    }

    @Test func `a store that moved back from a server is restored in its last state`() async throws
    {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.clock.advance(by: .seconds(1))
        let early = try await rig.append(8)
        try await round.run()
        await rig.store.close()
        await rig.shipper.finish()
        // A store that moves back from a server starts a file with a new count of commits, because
        // a server counts none.
        let end = try EmbeddedMoveEnd(rig.home.path, as: .source)
        try end.releaseIdentity()
        let identity = Data(rig.store.storeIdentity.bytes)
        try end.write { db in try end.setIdentity(identity, db) }
        await end.end()
        let again = try await ShippingRig(at: rig.home, clock: rig.clock, to: rig.destination)
        var next = ShippingRound(again.shipper)
        try await next.run()
        rig.clock.advance(by: .seconds(1))
        let late = try await again.append(2)
        try await next.run()
        await again.store.close()
        #expect(Catalogue(Array(rig.destination.objects.keys)).bases.count == 2)
        #expect(try await ShippingRig.restored(rig.destination).head == 10)
        for (index, moment) in (early + late).enumerated() {
            let head = try await ShippingRig.restored(rig.destination, asOf: moment).head
            #expect(head == UInt64(index + 1))
        }
    }

    /// Returns the span of a chain with these commits and log positions.
    private static func span(
        _ commits: ClosedRange<Int64>, _ heads: ClosedRange<UInt64>, until seconds: Int64
    ) -> ChainSpan {
        let (from, to) = (LogPosition(heads.lowerBound), LogPosition(heads.upperBound))
        let moment = Timestamp(seconds: seconds)
        return ChainSpan(
            first: LogMark(frame: 1, commits: commits.lowerBound, head: from, moment: moment),
            last: LogMark(frame: 2, commits: commits.upperBound, head: to, moment: moment))
    }

    @Test func `a chain is beyond another by its commits and log, or else by its moments`() {
        let former = Self.span(10...20, 5...9, until: 900)
        // The clock was ahead when the former chain was written.
        let next = Self.span(21...22, 9...9, until: 100)
        #expect(next.isBeyond(former) && !former.isBeyond(next))
        // The count of commits began again, and the former chain no longer has its first commits.
        let anew = Self.span(1...8, 9...12, until: 1000)
        #expect(anew.isBeyond(former) && !former.isBeyond(anew))
    }

    @Test func `a copy without the log that completes it is refused`() async throws {
        let (destination, _) = try await Self.shipped()
        let all = Catalogue(Array(destination.objects.keys))
        let base = try #require(all.bases.first)
        let gone = try #require(
            all.segments[base.chain]?.first { $0.sequence == base.reach.last })
        try await destination.remove(gone.name)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
        #expect(refusal?.description.contains("without it, its copy 1 is not whole") == true)
    }

    @Test func `a moment before the first copy is refused with the earliest moment`() async throws {
        let (destination, _) = try await Self.shipped()
        let base = try #require(Catalogue(Array(destination.objects.keys)).bases.first)
        let early = base.reach.moment.advanced(by: .milliseconds(-1))
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination, asOf: early)
        }
        #expect(
            refusal?.description
                == "memory: goes back only to \(base.reach.moment.iso8601)")
        let none = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(MemoryDestination())
        }
        #expect(none?.description == "there is no whole copy at memory:")
    }

    @Test func `a verification reads everything, and names damaged and missing objects`()
        async throws
    {
        let (destination, _) = try await Self.shipped()
        let sound = try await BackupVerification(of: destination)
        #expect(sound.problems == [] && sound.copies == 1)
        #expect(sound.segments == destination.segments.count)
        #expect(sound.bytes > 40 * 4096)
        let names = destination.segments
        let part = try #require(destination.objects.keys.filter { $0.contains("/part-") }.max())
        destination.change(part) { $0[100] ^= 1 }
        destination.change(names[names.count - 1]) { $0[900] ^= 1 }
        let damaged = try await BackupVerification(of: destination).problems
        #expect(
            damaged
                == [part, names[names.count - 1]].map {
                    "memory:/\($0) is damaged: its contents do not match its checksum"
                })
        let gone = names[names.count - 3]
        try await destination.remove(gone)
        let sequence = try #require(Catalogue([gone]).segments.values.first?.first?.sequence)
        let missing = try await BackupVerification(of: destination).problems
        #expect(missing.count == 3)
        #expect(missing[1].hasPrefix("segment \(sequence) of the chain "))
        #expect(missing[1].contains("can be restored only up to "))
        let empty = try await BackupVerification(of: MemoryDestination()).problems
        #expect(empty == ["there is no whole copy at memory:"])
    }

    @Test func `a segment in the place of another one is named`() async throws {
        let (destination, _) = try await Self.shipped()
        let (other, _) = try await Self.shipped()
        let names = (destination.segments, other.segments)
        let strange = other.objects[names.1[names.1.count - 1]] ?? []
        destination.change(names.0[names.0.count - 1]) { $0 = strange }
        let problems = try await BackupVerification(of: destination).problems
        #expect(problems.count == 1)
        #expect(problems.first?.contains(names.0[names.0.count - 1]) == true)
    }

    @Test func `a foreign object under the number of a segment does not block a restore`()
        async throws
    {
        let (destination, _) = try await Self.shipped()
        let name = try #require(destination.segments.dropLast().last)
        guard case .segment(let chain, let sequence, let moment)? = BackupName(name) else {
            Issue.record("\(name)")
            return
        }
        for step in [-1, 1] {
            let other = BackupName.segment(
                chain: chain, sequence: sequence,
                moment: moment.advanced(by: .milliseconds(step)))
            try await destination.put(other.text, [1, 2, 3])
        }
        #expect(try await ShippingRig.restored(destination).head == 16)
        let problems = try await BackupVerification(of: destination).problems
        #expect(problems.count == 2 && problems.allSatisfy { $0.contains("is damaged") })
    }

    @Test func `segments of another chain are not used`() async throws {
        let (destination, _) = try await Self.shipped()
        let names = destination.segments
        let other = destination.objects[names[names.count - 2]]
        destination.change(names[names.count - 1]) { $0 = other ?? [] }
        await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(destination)
        }
    }
}
