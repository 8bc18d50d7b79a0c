import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import LogShipping

/// What the shipper ships, and what can be restored from it.
@Suite struct ShippingTests {
    @Test func `every commit since the first copy can be restored`() async throws {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        rig.clock.advance(by: .seconds(1))
        var moments: [Timestamp] = []
        for _ in 0..<6 {
            moments += try await rig.append(5)
            try await round.run()
        }
        await rig.store.close()
        for (index, moment) in moments.enumerated() {
            let (head, outcome) = try await ShippingRig.restored(rig.destination, asOf: moment)
            #expect(head == UInt64(4 + index))
            #expect(outcome.mark.moment == moment)
            #expect(outcome.next?.moment == (index + 1 < moments.count ? moments[index + 1] : nil))
        }
        let (head, outcome) = try await ShippingRig.restored(rig.destination)
        #expect(head == 33)
        #expect(outcome.next == nil)
        // A moment between two commits restores the state after the first.
        let between = moments[7].advanced(by: .milliseconds(500))
        #expect(try await ShippingRig.restored(rig.destination, asOf: between).head == 11)
    }

    @Test func `a copy is consistent although everything is rewritten while it is made`()
        async throws
    {
        let work = Work()
        let rig = try await ShippingRig(
            to: MemoryDestination(beforePut: { name in
                // Commits and checkpoints happen between any two parts, before the copy is
                // complete.
                if name.contains("/base-") { await work.run() }
            }))
        try await rig.furnish()
        try await rig.append(40)
        await work.set { try await rig.append(7) }
        var round = ShippingRound(rig.shipper)
        try await round.run()
        #expect(await work.count > 5)
        await work.set(nil)
        try await rig.append(2)
        try await round.run()
        let head = try await rig.store.head().rawValue
        #expect(try await ShippingRig.restored(rig.destination).head == head)
        let base = try #require(Catalogue(Array(rig.destination.objects.keys)).bases.last)
        let first = try await ShippingRig.restored(rig.destination, asOf: base.reach.moment)
        #expect(first.head < head && first.head > 40)
        await rig.store.close()
    }

    @Test func `an orderly end ships the rest, and the next start continues the chain`()
        async throws
    {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        try await rig.append(9)
        await rig.store.close()
        await rig.shipper.finish()
        #expect(try await ShippingRig.restored(rig.destination).head == 9)
        let again = try await ShippingRig(
            at: rig.home, clock: rig.clock, to: rig.destination)
        #expect(again.spool.chainName == rig.spool.chainName)
        try await again.append(4)
        var next = ShippingRound(again.shipper)
        try await next.run()
        #expect(again.shipper.status.bases == 1)
        #expect(again.shipper.status.endedChains == 0)
        #expect(try await ShippingRig.restored(rig.destination).head == 13)
        await again.store.close()
    }

    @Test func `commits of a killed relay are shipped by the next one with their moments`()
        async throws
    {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.clock.advance(by: .seconds(1))
        let moments = try await rig.append(10)
        let killed = try rig.remains()
        await rig.store.close()
        rig.clock.advance(by: .seconds(60))
        let again = try await ShippingRig(at: killed, clock: rig.clock, to: rig.destination)
        #expect(again.spool.chainName == rig.spool.chainName)
        var next = ShippingRound(again.shipper)
        try await next.run()
        #expect(again.shipper.status.bases == 1)
        for (index, moment) in moments.enumerated() {
            let head = try await ShippingRig.restored(rig.destination, asOf: moment).head
            #expect(head == UInt64(index + 1))
        }
        #expect(try await ShippingRig.restored(rig.destination).head == 10)
        await again.store.close()
    }

    @Test func `another user of the file ends the chain, and a new copy begins another`()
        async throws
    {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        await rig.store.close()
        let other = try rig.home.open()
        _ = try await other.append(
            [Sample.unkeyed("other")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        await other.close()
        rig.clock.advance(by: .seconds(1))
        let again = try await ShippingRig(at: rig.home, clock: rig.clock, to: rig.destination)
        #expect(again.spool.chainName == nil)
        #expect(again.spool.takeEnding() == "another program has opened the file since then")
        var next = ShippingRound(again.shipper)
        try await next.run()
        #expect(again.shipper.status.bases == 2)
        #expect(try await ShippingRig.restored(rig.destination).head == 1)
        await again.store.close()
    }

    /// A machine's clock may be ahead when it starts.
    @Test(arguments: [1, 7])
    func `the newest backups are kept and restored although the clock was ahead`(
        kept: Int
    ) async throws {
        let clock = TestClock()
        clock.advance(by: .seconds(86_400))
        let rig = try await ShippingRig(clock: clock) { $0.keptBases = kept }
        try await rig.furnish()
        try await rig.append(2)
        var round = ShippingRound(rig.shipper)
        try await round.run()
        await rig.store.close()
        // A commit without a spool ends the chain.
        let other = try rig.home.open()
        _ = try await other.append(
            [Sample.unkeyed("other")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        await other.close()
        let again = try await ShippingRig(at: rig.home, to: rig.destination) {
            $0.keptBases = kept
        }
        try await again.append(3)
        var next = ShippingRound(again.shipper)
        try await next.run()
        await again.store.close()
        let catalogue = Catalogue(Array(rig.destination.objects.keys))
        #expect(catalogue.bases.first?.chain == again.spool.chainName)
        #expect(try await ShippingRig.restored(rig.destination).head == 6)
        // The chain with the later moments is not the later chain.
        let later = again.clock.moment.advanced(by: .seconds(60))
        let restored = try await ShippingRig.restored(rig.destination, asOf: later)
        #expect(restored.head == 6 && restored.outcome.later == nil)
    }

    @Test func `a clock that is set back by far begins a new chain`()
        async throws
    {
        let clock = TestClock()
        clock.advance(by: .seconds(86_400))
        let rig = try await ShippingRig(clock: clock)
        try await rig.furnish()
        try await rig.append(2)
        var round = ShippingRound(rig.shipper)
        try await round.run()
        await rig.store.close()
        await rig.shipper.finish()
        let again = try await ShippingRig(at: rig.home, to: rig.destination)
        let chain = try #require(again.spool.chainName)
        #expect(chain == rig.spool.chainName)
        var next = ShippingRound(again.shipper)
        // The machine's clock may be wrong for some minutes, so the chain does not end at once.
        for _ in 1..<60 { try await next.run() }
        #expect(again.spool.chainName == chain)
        try await next.run()
        #expect(again.spool.takeEnding() == "the clock was set back by more than an hour")
        #expect(again.spool.chainName != nil && again.spool.chainName != chain)
        let moments = try await again.append(3)
        try await next.run()
        #expect(again.spool.takeEnding() == nil)
        await again.store.close()
        for (index, moment) in moments.enumerated() {
            let head = try await ShippingRig.restored(rig.destination, asOf: moment).head
            #expect(head == UInt64(index + 3))
        }
        #expect(try await ShippingRig.restored(rig.destination).head == 5)
    }

    @Test func `a destination that was away is shipped to when it is back`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.destination.fail(DestinationFailure(.away, "nobody answers"))
        for _ in 0..<3 {
            try await rig.append(5)
            await #expect(throws: DestinationFailure.self) { try await round.run() }
        }
        #expect(rig.shipper.status.waitingBytes > 0)
        rig.destination.fail(nil)
        try await round.run()
        #expect(rig.shipper.status.waitingBytes == 0)
        #expect(rig.shipper.status.bases == 1)
        #expect(try await ShippingRig.restored(rig.destination).head == 15)
        await rig.store.close()
    }

    @Test func `a part of a copy whose answer was lost is recognised as our own`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        try await rig.append(40)
        var round = ShippingRound(rig.shipper)
        rig.destination.loseAnswer(of: "/part-")
        await #expect(throws: DestinationFailure.self) { try await round.run() }
        let chain = rig.spool.chainName
        #expect(rig.destination.objects.keys.contains { $0.contains("/part-") })
        // The file has changed by the time of the next attempt.
        try await rig.append(40)
        try await round.run()
        #expect(rig.spool.takeEnding() == nil)
        #expect(chain != nil && rig.spool.chainName == chain)
        #expect(rig.shipper.status.bases == 1)
        #expect(try await ShippingRig.restored(rig.destination).head == 80)
        await rig.store.close()
    }

    @Test func `a copy that was removed is made again before the next one is due`() async throws {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        let chain = rig.spool.chainName
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.chainName == chain)
        rig.destination.empty()
        try await rig.append(3)
        await #expect(throws: ShippingFailure.self) { try await round.run() }
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.takeEnding() == "its copy is no longer at memory:")
        try await round.run()
        #expect(rig.spool.chainName != nil && rig.spool.chainName != chain)
        #expect(rig.shipper.status.bases == 1)
        #expect(rig.destination.objects["store"] != nil)
        #expect(try await ShippingRig.restored(rig.destination).head == 6)
        await rig.store.close()
    }

    @Test(arguments: [true, false])
    func `a copy with a removed part is made again before the next one is due`(
        isStartedAnew: Bool
    ) async throws {
        let rig = try await ShippingRig()
        var round = try await rig.firstRound(after: 3)
        let chain = rig.spool.chainName
        if isStartedAnew { round = ShippingRound(rig.shipper) }
        try await round.run()
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.chainName == chain)
        let parts = rig.destination.objects.keys.filter { $0.contains("/part-") }
        try await rig.destination.remove(try #require(parts.max()))
        try await rig.append(3)
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        #expect(rig.spool.takeEnding() == "a part of its copy is no longer at memory:")
        try await round.run()
        #expect(rig.spool.chainName != nil && rig.spool.chainName != chain)
        #expect(try await ShippingRig.restored(rig.destination).head == 6)
        await rig.store.close()
    }

    /// The backups were removed at the destination.
    ///
    /// If `isKilled`, the relay ships on and is killed before it checks that its copy is there.
    /// Otherwise the next copy is due before it checks.
    @Test(arguments: [true, false])
    func `a new copy does not rely on segments that were removed`(isKilled: Bool) async throws {
        // The write-ahead log must not be started anew: the new copy needs all of it.
        let rig = try await ShippingRig(checkpointPages: 100_000)
        try await rig.furnish()
        try await rig.append(3)
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.destination.empty(except: BackupName.store)
        try await rig.append(2)
        try await round.run()
        #expect(!rig.destination.segments.isEmpty)
        if isKilled {
            let killed = try rig.remains()
            await rig.store.close()
            let again = try await ShippingRig(
                at: killed, clock: rig.clock, to: rig.destination, checkpointPages: 100_000)
            #expect(again.spool.chainName == rig.spool.chainName)
            var next = ShippingRound(again.shipper)
            try await next.run()
            await again.store.close()
        } else {
            rig.clock.advance(by: rig.shipper.settings.baseInterval)
            try await round.run()
            // This round ends the chain; the next round begins another.
            try await round.run()
            await rig.store.close()
        }
        #expect(try await ShippingRig.restored(rig.destination).head == 5)
    }

    @Test func `a full spool ends the chain, drops everything and begins another chain`()
        async throws
    {
        let rig = try await ShippingRig(spoolBytes: 60 * 4120)
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        rig.destination.fail(DestinationFailure(.away, "nobody answers"))
        try await rig.append(60)
        #expect(rig.spool.chainName == nil)
        #expect(rig.shipper.status.waitingBytes == 0)
        let ending = try #require(rig.spool.takeEnding())
        #expect(ending == "more than \(60 * 4120) bytes wait to be shipped")
        rig.destination.fail(nil)
        try await round.run()
        #expect(rig.shipper.status.bases == 2)
        #expect(try await ShippingRig.restored(rig.destination).head == 60)
        await rig.store.close()
    }

    @Test func `the backups of another store are left alone`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        let other = try await ShippingRig(clock: rig.clock, to: rig.destination)
        let before = rig.destination.objects
        var next = ShippingRound(other.shipper)
        let refusal = await #expect(throws: ShippingFailure.self) { try await next.run() }
        #expect(
            refusal?.description == "memory: holds the backups of the store "
                + "\(rig.store.storeIdentity): name another place in backup.url, and keep that one "
                + "to restore from")
        #expect(rig.destination.objects == before)
        await other.store.close()
        await rig.store.close()
    }

    @Test func `two relays on copies of one store do not write to one chain`() async throws {
        // The second relay begins a chain of its own, and what the first one shipped stays
        // complete.
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        let copy = try rig.remains()
        try await rig.append(2)
        try await round.run()
        let twin = try await ShippingRig(at: copy, clock: rig.clock, to: rig.destination)
        try await twin.append(1)
        var next = ShippingRound(twin.shipper)
        try await next.run()
        #expect(
            twin.spool.takeEnding()
                == "another relay, on a copy of the store, ships the same chain")
        let chain = try #require(rig.spool.chainName)
        #expect(twin.spool.chainName != nil && twin.spool.chainName != chain)
        let moment = try #require(Catalogue(rig.destination.segments).segments[chain]?.last?.moment)
        #expect(try await ShippingRig.restored(rig.destination, asOf: moment).head == 2)
        #expect(try await BackupVerification(of: rig.destination).problems == [])
        await twin.store.close()
        await rig.store.close()
    }

    @Test func `two relays that start on copies at once notice each other and separate`()
        async throws
    {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        let chain = try #require(rig.spool.chainName)
        let twin = try await ShippingRig(
            at: try rig.remains(), clock: rig.clock, to: rig.destination)
        var other = ShippingRound(twin.shipper)
        // When the second relay checks, the first has not shipped anything new yet.
        try await other.look()
        rig.clock.advance(by: .seconds(1))
        let moments = try await rig.append(2)
        try await twin.append(1)
        try await round.run()
        try await other.run()
        #expect(rig.spool.chainName == chain && twin.spool.chainName == chain)
        let words = "another relay, on a copy of the store, ships the same chain"
        let problems = try await BackupVerification(of: rig.destination).problems
        #expect(problems.count == 1 && problems[0].contains("is there more than once"))
        let catalogue = Catalogue(Array(rig.destination.objects.keys))
        let offer = try #require(catalogue.bases.first)
        #expect(catalogue.doubled(of: offer) ?? 0 > offer.reach.last)
        let refusal = await #expect(throws: BackupRefusal.self) {
            try await ShippingRig.restored(rig.destination, asOf: moments[1])
        }
        #expect(
            refusal?.description.contains("up to \(offer.reach.moment.iso8601), with") == true)
        rig.clock.advance(by: .seconds(601))
        try await round.run()
        try await other.run()
        #expect(rig.spool.takeEnding() == words)
        #expect(twin.spool.takeEnding() == words)
        try await round.run()
        let next = try #require(rig.spool.chainName)
        #expect(next != chain)
        #expect(try await ShippingRig.restored(rig.destination).head == 2)
        await twin.store.close()
        await rig.store.close()
    }

    @Test func `a chain that another relay also ships to ends before the next copy`()
        async throws
    {
        let rig = try await ShippingRig { $0.baseInterval = .seconds(60) }
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        let chain = try #require(rig.spool.chainName)
        let name = try #require(rig.destination.segments.last)
        guard case .segment(_, let sequence, let moment)? = BackupName(name) else {
            Issue.record("\(name)")
            return
        }
        let other = BackupName.segment(
            chain: chain, sequence: sequence, moment: moment.advanced(by: .seconds(1)))
        try await rig.destination.put(other.text, [1])
        rig.clock.advance(by: .seconds(61))
        try await round.run()
        #expect(
            rig.spool.takeEnding()
                == "another relay, on a copy of the store, ships the same chain")
        try await round.run()
        #expect(rig.spool.chainName != nil && rig.spool.chainName != chain)
        await rig.store.close()
    }

    @Test func `a restored file equals the store's file byte for byte`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        try await round.run()
        for _ in 0..<4 {
            try await rig.append(9)
            try await round.run()
        }
        await rig.store.close()
        await rig.shipper.finish()
        let place = try TemporaryStore(in: .memory)
        _ = try await BackupReading(rig.destination).rebuild(at: place.path, asOf: nil)
        let rebuilt = try Data(contentsOf: URL(filePath: place.path))
        #expect(rebuilt == (try Data(contentsOf: URL(filePath: rig.home.path))))
        #expect(rebuilt.count > 40 * 4096)
    }

    @Test func `the remains of copies that were never completed are removed`() async throws {
        let rig = try await ShippingRig()
        try await rig.furnish()
        try await rig.append(30)
        var round = ShippingRound(rig.shipper)
        try await round.look()
        // Two chains without a complete copy.
        for chain in ["20200101T000000Z-0000000000000001", "20200102T000000Z-0000000000000002"] {
            for name in [
                "log-000000000001-1", "log-000000000002-2", "base-000000000001/part-000001",
            ] {
                try await rig.destination.put("\(chain)/\(name)", [1])
            }
        }
        try await rig.destination.put("a stranger's file", [1])
        try await round.run()
        let chain = try #require(rig.spool.chainName)
        let names = rig.destination.objects.keys.filter { !$0.hasPrefix(chain) }
        #expect(Set(names) == ["store", "a stranger's file"])
        #expect(try await ShippingRig.restored(rig.destination).head == 30)
        await rig.store.close()
    }

    @Test func `chains that no restore needs any more are removed completely`() async throws {
        let rig = try await ShippingRig { $0.keptBases = 2 }
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        for number in 0..<4 {
            try await rig.append(3)
            try await round.run()
            if number < 3 { rig.spool.end(because: "the test ends it") }
            rig.clock.advance(by: .seconds(1))
        }
        let catalogue = Catalogue(Array(rig.destination.objects.keys))
        let chains = catalogue.bases.map(\.chain)
        #expect(chains.count == 2 && Set(chains).count == 2)
        #expect(Set(catalogue.segments.keys) == Set(chains))
        #expect(Set(catalogue.parts.keys) == Set(chains))
        #expect(try await ShippingRig.restored(rig.destination).head == 12)
        await rig.store.close()
    }

    @Test func `appends are answered while the destination does not answer`() async throws {
        let gate = Work()
        let rig = try await ShippingRig(
            to: MemoryDestination(beforePut: { _ in await gate.run() }))
        try await rig.furnish()
        let (opened, open) = AsyncStream<Void>.makeStream()
        let (reached, reach) = AsyncStream<Void>.makeStream()
        await gate.set {
            reach.yield()
            var waiting = opened.makeAsyncIterator()
            await waiting.next()
        }
        let shipper = rig.shipper
        let shipping = Task {
            var round = ShippingRound(shipper)
            try await round.run()
        }
        var arrivals = reached.makeAsyncIterator()
        await arrivals.next()
        // More commits than trigger several checkpoints.
        try await rig.append(40)
        #expect(try await rig.store.head().rawValue == 40)
        await gate.set(nil)
        open.finish()
        try await shipping.value
        #expect(try await ShippingRig.restored(rig.destination).head == 40)
        await rig.store.close()
    }

    @Test func `old copies are removed together with the log that only they need`() async throws {
        let rig = try await ShippingRig { settings in
            settings.keptBases = 2
            settings.baseInterval = .seconds(10)
        }
        try await rig.furnish()
        var round = ShippingRound(rig.shipper)
        for _ in 0..<5 {
            try await rig.append(12)
            try await round.run()
        }
        let catalogue = Catalogue(Array(rig.destination.objects.keys))
        #expect(catalogue.bases.map(\.number) == [4, 5])
        #expect(rig.shipper.status.bases == 2)
        let first = try #require(catalogue.segments[catalogue.bases[0].chain]?.first)
        #expect(first.sequence == catalogue.bases[0].reach.since)
        #expect(try await ShippingRig.restored(rig.destination).head == 60)
        await rig.store.close()
    }
}

/// A closure that runs when the shipper reaches a certain point.
private actor Work {
    private var body: (@Sendable () async throws -> Void)?
    private(set) var count = 0

    func set(_ body: (@Sendable () async throws -> Void)?) { self.body = body }

    func run() async {
        guard let body else { return }
        count += 1
        do {
            try await body()
        } catch {
            Issue.record(error)
        }
    }
}
