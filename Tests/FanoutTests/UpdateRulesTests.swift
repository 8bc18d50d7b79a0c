import Fanout
import Matching
import RelayModel
import RelayTestKit
import Storage
import Testing

/// The updates for which a subscription on `price < 100` fires.
@Suite struct UpdateRulesTests {
    private static let cheap: RecordFields = ["price": .integer(50)]
    private static let dear: RecordFields = ["price": .integer(120)]

    private static func update(
        from before: RecordImage?, to after: RecordImage, changedKeys: [String]? = nil
    ) -> RecordChange {
        var change = Fixtures.change(.update)
        change.before = before
        change.after = after
        change.changedKeys = changedKeys
        return change
    }

    private func check(
        _ firesWhen: FiresWhen, changedKeys: [String] = [], _ change: RecordChange, fires: Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var subscription = Fixtures.subscription("s1", where: "price < 100")
        subscription.firesWhen = firesWhen
        subscription.changedKeys = changedKeys
        var state = ShardState(indexSeed: 1)
        // The neighbours must neither hide the subscription nor be affected by it.
        try state.insert(version(1, of: Fixtures.subscription("plain", where: "price < 100")))
        try state.insert(version(2, of: subscription))
        try state.insert(version(3, of: Fixtures.subscription("every")))
        let fired = try state.firedSerials(
            by: change, appendedAt: Fixtures.moment, isStale: false, in: Fixtures.container
        )
        let doesMatch = change.judgedImage?.fields["price"] == .integer(50)
        let expected = (doesMatch ? [1] : []) + (fires ? [2] : []) + [3]
        #expect(fired == expected.map(UInt64.init), sourceLocation: sourceLocation)
        state.removeSubscription(2, of: Fixtures.container)
        let rest = try state.firedSerials(
            by: change, appendedAt: Fixtures.moment, isStale: false, in: Fixtures.container
        )
        #expect(!rest.contains(2), sourceLocation: sourceLocation)
    }

    private func version(_ serial: UInt64, of subscription: Subscription) -> SubscriptionVersion {
        SubscriptionVersion(
            serial: serial, subscription: subscription, activation: LogPosition(serial))
    }

    /// What is computed for one subscription is reused for the next.
    @Test(arguments: [nil, ["price"]] as [[String]?])
    func `subscriptions on the same fields are judged for each update`(
        listed: [String]?
    ) throws {
        var state = ShardState(indexSeed: 1)
        let keys = [["note"], ["price"], ["note", "price"], ["price", "note"], ["note"], []]
        for (index, names) in keys.enumerated() {
            var subscription = Fixtures.subscription("s\(index)", where: "price < 100")
            subscription.changedKeys = names
            try state.insert(version(UInt64(index + 1), of: subscription))
        }
        func fired(_ change: RecordChange) throws -> [UInt64] {
            try state.firedSerials(
                by: change, appendedAt: Fixtures.moment, isStale: false, in: Fixtures.container)
        }
        let changed = Self.update(
            from: RecordImage(["price": .integer(60)]), to: RecordImage(Self.cheap),
            changedKeys: listed)
        let told = try fired(changed)
        #expect(told == [2, 3, 4, 6])
        let same = Self.update(
            from: RecordImage(Self.cheap), to: RecordImage(Self.cheap),
            changedKeys: listed.map { _ in [] })
        let toldOfNothing = try fired(same)
        #expect(toldOfNothing == [6])
    }

    @Test func `the images before and after decide together`() throws {
        let entering = Self.update(from: RecordImage(Self.dear), to: RecordImage(Self.cheap))
        let leaving = Self.update(from: RecordImage(Self.cheap), to: RecordImage(Self.dear))
        let staying = Self.update(from: RecordImage(Self.cheap), to: RecordImage(Self.cheap))
        let apart = Self.update(from: RecordImage(Self.dear), to: RecordImage(Self.dear))
        let table: [(FiresWhen, [Bool])] = [
            (.matches, [true, false, true, false]), (.entered, [true, false, false, false]),
            (.left, [false, true, false, false]), (.stayed, [false, false, true, false]),
        ]
        for (firesWhen, expected) in table {
            for (change, fires) in zip([entering, leaving, staying, apart], expected) {
                try check(firesWhen, change, fires: fires)
            }
        }
    }

    @Test func `an unknown image never counts as entered, left or stayed`() throws {
        let unknown = RecordImage([:], completeness: .partial)
        for before in [nil, unknown] {
            let change = Self.update(from: before, to: RecordImage(Self.cheap))
            try check(.matches, change, fires: true)
            for firesWhen in [FiresWhen.entered, .left, .stayed] {
                try check(firesWhen, change, fires: false)
            }
        }
        try check(.left, Self.update(from: RecordImage(Self.cheap), to: unknown), fires: false)
    }

    @Test func `a partial image decides if it has the fields that are read`() throws {
        let dear = RecordImage(Self.dear, completeness: .partial)
        let cheap = RecordImage(Self.cheap, completeness: .partial)
        try check(.entered, Self.update(from: dear, to: cheap), fires: true)
        try check(.left, Self.update(from: cheap, to: dear), fires: true)
        try check(.stayed, Self.update(from: cheap, to: cheap), fires: true)
    }

    @Test func `creations and deletions are judged as usual`() throws {
        for firesWhen in FiresWhen.allCases {
            for operation in [ChangeOperation.create, .delete] {
                try check(
                    firesWhen, changedKeys: ["title"],
                    Fixtures.change(operation, fields: Self.cheap), fires: true)
                try check(firesWhen, Fixtures.change(operation, fields: Self.dear), fires: false)
            }
        }
    }

    @Test func `changed keys come from the source, or from comparing the images`() throws {
        let before = RecordImage(["price": .integer(50), "title": .string("a")])
        let after = RecordImage(["price": .integer(50), "title": .string("b")])
        let change = Self.update(from: before, to: after)
        try check(.matches, changedKeys: ["title"], change, fires: true)
        try check(.matches, changedKeys: ["price"], change, fires: false)
        try check(.stayed, changedKeys: ["price", "title"], change, fires: true)
        try check(.entered, changedKeys: ["title"], change, fires: false)
        let told = Self.update(from: nil, to: after, changedKeys: ["price"])
        try check(.matches, changedKeys: ["price"], told, fires: true)
        try check(.matches, changedKeys: ["title"], told, fires: false)
        try check(
            .matches, changedKeys: ["title"], Self.update(from: nil, to: after), fires: false)
        // A field that appears or disappears has changed. A field that was nil and is now absent
        // has not.
        let gone = Self.update(from: after, to: RecordImage(Self.cheap))
        try check(.matches, changedKeys: ["title"], gone, fires: true)
        let null = RecordImage(["price": .integer(50), "note": .null])
        try check(
            .matches, changedKeys: ["note"], Self.update(from: null, to: RecordImage(Self.cheap)),
            fires: false)
    }

    @Test func `the image before is judged by the former modification`() throws {
        var subscription = Fixtures.subscription(
            "s", where: "modificationDate > CAST(700000000, 'NSDate')")
        subscription.firesWhen = .entered
        var state = ShardState(indexSeed: 1)
        try state.insert(version(1, of: subscription))
        var change = Self.update(from: RecordImage(Self.dear), to: RecordImage(Self.cheap))
        change.occurredAt = Timestamp(seconds: 1_700_000_000)
        func fires() throws -> Bool {
            try !state.firedSerials(
                by: change, appendedAt: Fixtures.moment, isStale: false, in: Fixtures.container
            ).isEmpty
        }
        #expect(try !fires(), "nobody knows when it was modified before")
        change.formerlyModified = RecordTrace(at: Timestamp(seconds: 1_600_000_000), userID: nil)
        #expect(try fires())
        change.formerlyModified = RecordTrace(at: Timestamp(seconds: 1_690_000_000), userID: nil)
        #expect(try !fires(), "it was in before")
    }
}
