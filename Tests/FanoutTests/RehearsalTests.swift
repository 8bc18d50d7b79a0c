import Fanout
import Matching
import PredicateLanguage
import RelayModel
import RelayTestKit
import Storage
import Testing

/// How a rehearsal judges and counts.
@Suite struct RehearsalTests {
    private static func logged(
        _ position: UInt64, _ change: RecordChange, at seconds: Int64 = 1_700_000_000,
        mayNameReaders: Bool = true, mayNameOrigin: Bool = true
    ) throws -> LoggedPastChange {
        LoggedPastChange(
            position: LogPosition(position), appendedAt: Timestamp(seconds: seconds),
            source: Fixtures.identifier("database"), change: .stored(try change.storedText()),
            mayNameReaders: mayNameReaders, mayNameOrigin: mayNameOrigin)
    }

    private static func price(
        _ price: Int64, _ operation: ChangeOperation = .create
    )
        -> RecordChange
    {
        Fixtures.change(operation, fields: ["price": .integer(price)])
    }

    private static func device(_ name: String) -> PastDevice {
        PastDevice(
            serial: UInt64(name.utf8.count), id: Fixtures.identifier(name),
            owner: Fixtures.identifier("alice"), gateway: .apns, gatewayEnvironment: .development,
            topic: nil, registeredAt: Fixtures.moment, activation: .start, ended: nil)
    }

    private static func cheap(_ bound: Int = 100) -> Subscription {
        Fixtures.subscription("cheap", where: "price < \(bound)")
    }

    /// Returns the tally of the changes, which are taken newest first unless `order` says
    /// otherwise.
    private static func tally(
        _ changes: [LoggedPastChange], of subscription: Subscription,
        insteadOf former: Subscription? = nil, remembering most: Int = 2,
        order: RehearsalTally.Order = .newestFirst
    ) throws -> RehearsalTally {
        var rehearsal = try Rehearsal(of: subscription, insteadOf: former, to: [])
        var tally = RehearsalTally(
            of: subscription, insteadOf: former, remembering: most, order: order)
        let sorted = changes.sorted { $0.position > $1.position }
        for change in order == .newestFirst ? sorted : sorted.reversed() {
            if let verdict = try rehearsal.judge(change) { tally.add(change, verdict) }
        }
        return tally
    }

    // MARK: Judging

    @Test func `a change that the owner may not read or cannot watch is not counted`()
        throws
    {
        var hidden = Self.price(1)
        hidden.readers = ["bob"]
        var shown = Self.price(1)
        shown.readers = ["alice"]
        var foreign = Self.price(1)
        foreign.database = .private
        foreign.owner = Fixtures.identifier("alice")
        var snapshot = Self.price(1)
        snapshot.isSnapshot = true
        var rehearsal = try Rehearsal(of: Self.cheap(), to: [])
        for (change, isSeen) in [
            (Self.price(1), true), (hidden, false), (shown, true), (foreign, false),
            (snapshot, false),
            (Fixtures.change(of: "Artist", fields: ["price": .integer(1)]), false),
        ] {
            let verdict = try rehearsal.judge(try Self.logged(1, change))
            #expect((verdict != nil) == isSeen)
            #expect(verdict?.fires ?? true)
        }
    }

    @Test func `a change without readers and origin is judged alike without decoding`()
        throws
    {
        let devices = [Self.device("phone"), Self.device("tablet")]
        for subscription in [Self.cheap(), Self.cheap(0)] {
            var rehearsal = try Rehearsal(of: subscription, to: devices)
            for operation in ChangeOperation.allCases {
                let change = Self.price(1, operation)
                let slow = try rehearsal.judge(try Self.logged(1, change))
                let fast = try rehearsal.judge(
                    try Self.logged(1, change, mayNameReaders: false, mayNameOrigin: false))
                #expect(slow?.fires == fast?.fires)
                #expect(slow?.pushes == fast?.pushes)
                #expect(slow?.operation == operation && fast?.operation == operation)
            }
        }
    }

    @Test(arguments: [false, true], [nil, false, true] as [Bool?])
    func `counting oldest first gives the same as newest first`(isOnce: Bool, wasOnce: Bool?) throws
    {
        var subscription = Self.cheap()
        subscription.firesOnce = isOnce
        let former = wasOnce.map { wasOnce in
            var former = Self.cheap(40)
            former.firesOnce = wasOnce
            return former
        }
        let prices: [Int64] = [120, 30, 99, 39, 200, 41, 7, 100, 60, 38]
        for count in 0...prices.count {
            let changes = try prices.prefix(count).enumerated().map { number, price in
                try Self.logged(
                    UInt64(number + 1), Self.price(price), at: 1_700_000_000 + Int64(number) * 999)
            }
            let log = try Self.tally(changes, of: subscription, insteadOf: former)
            let file = try Self.tally(
                changes, of: subscription, insteadOf: former, order: .oldestFirst)
            #expect(file.counts == log.counts)
            #expect(file.difference == log.difference)
            #expect(file.firedExamples == log.firedExamples)
            #expect(file.once == log.once)
            #expect(file.oldest == log.oldest && file.newest == log.newest)
            #expect(file.lookedAt == count && file.matched == log.matched)
        }
    }

    @Test func `the device that made the change is not counted`() throws {
        var change = Self.price(1)
        change.origin = ChangeOrigin(
            deviceID: Fixtures.identifier("phone"), userID: Fixtures.identifier("alice"))
        var subscription = Self.cheap()
        for (suppress, pushes) in [(.device, 1), (.user, 0), (.none, 2)]
            as [(OriginSuppression, Int)]
        {
            subscription.suppress = suppress
            var rehearsal = try Rehearsal(
                of: subscription, to: [Self.device("phone"), Self.device("tablet")])
            #expect(try rehearsal.judge(try Self.logged(1, change))?.pushes == pushes)
        }
    }

    @Test func `a condition that takes too many steps ends the rehearsal`() throws {
        let subscription = Fixtures.subscription("dear", where: "title LIKE \"*a*b*\"")
        let change = Fixtures.change(
            fields: ["title": .string(String(repeating: "ab", count: 2000))])
        var usual = try Rehearsal(of: subscription, to: [])
        #expect(try usual.judge(try Self.logged(1, change))?.fires == true)
        var bounded = try Rehearsal(of: subscription, to: [], mostSteps: 1)
        #expect(throws: DearChange.self) {
            _ = try bounded.judge(try Self.logged(1, change))
        }
    }

    // MARK: Counting

    @Test func `firings are counted by operation and by hour, also before 1970`() throws {
        let changes = [
            try Self.logged(1, Self.price(1), at: -1),
            try Self.logged(2, Self.price(1, .update), at: 0),
            try Self.logged(3, Self.price(200), at: 3599),
            try Self.logged(4, Self.price(1), at: 3599),
            try Self.logged(5, Self.price(1), at: 3600),
        ]
        let tally = try Self.tally(changes, of: Self.cheap())
        #expect(tally.lookedAt == 5)
        #expect(tally.counts.fired == 4)
        #expect(tally.counts.byOperation == [.create: 3, .update: 1])
        #expect(tally.counts.byHour == [-1: 1, 0: 2, 1: 1])
        #expect(tally.firedExamples.map(\.position) == [5, 4].map { LogPosition($0) })
        #expect(tally.oldest?.position == LogPosition(1))
        #expect(tally.newest?.position == LogPosition(5))
    }

    @Test func `a once subscription is fired by the first matching change`() throws {
        var once = Self.cheap()
        once.firesOnce = true
        let changes = try [200, 1, 2, 3].enumerated().map {
            try Self.logged(UInt64($0.offset + 1), Self.price($0.element))
        }
        let tally = try Self.tally(changes, of: once)
        #expect(tally.counts.fired == 1)
        #expect(tally.matched == 3)
        #expect(tally.once?.position == LogPosition(2))
        #expect(tally.firedExamples.map(\.position) == [LogPosition(2)])
        #expect(try Self.tally(Array(changes.prefix(1)), of: once).counts.fired == 0)
    }

    /// Columns: whether the draft and the saved subscription fire once, and the positions that are
    /// added and removed.
    static let differences: [(Bool, Bool, [UInt64], [UInt64])] = [
        // The draft matches 2, 3 and 4; the saved subscription matches 1, 2 and 3.
        (false, false, [4], [1]), (true, true, [2], [1]), (true, false, [], [3, 1]),
        (false, true, [4, 3, 2], [1]),
    ]

    @Test(arguments: differences)
    func `the difference of two subscriptions is that of their firings`(
        isOnce: Bool, wasOnce: Bool, added: [UInt64], removed: [UInt64]
    ) throws {
        var draft = Fixtures.subscription("s", where: "price >= 2 AND price <= 4")
        draft.firesOnce = isOnce
        var saved = Fixtures.subscription("s", where: "price >= 1 AND price <= 3")
        saved.firesOnce = wasOnce
        let changes = try (1...5).map { try Self.logged($0, Self.price(Int64($0))) }
        let difference = try Self.tally(
            changes, of: draft, insteadOf: saved, remembering: 9
        ).difference
        #expect(difference.firedFormerly == (wasOnce ? 1 : 3))
        #expect(difference.addedExamples.map(\.position.rawValue) == added)
        #expect(difference.added == added.count)
        #expect(difference.removedExamples.map(\.position.rawValue) == removed)
        #expect(difference.removed == removed.count)
    }
}
