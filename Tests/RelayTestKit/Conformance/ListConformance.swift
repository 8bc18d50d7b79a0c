import RelayModel
import Storage
import Testing

/// The contract of ``Storage/ListRegistry``.
package enum ListConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("changes are listed newest first, and by record", check: changes),
        ConformanceCase(
            "waiting deliveries and dead letters are listed by filter", check: exceptions),
        ConformanceCase("receipts are listed newest first from a position on", check: receipts),
        ConformanceCase("versions and parked changes are listed newest first", check: versions),
    ]

    /// Reads all pages of a list, with `rows` rows a page.
    private static func all<Element, Place>(
        by rows: Int, _ page: (Place?, PageBounds) async throws -> ListPage<Element, Place>
    ) async throws -> [Element] {
        var elements: [Element] = []
        var place: Place?
        repeat {
            let found = try await page(place, PageBounds(rows: rows))
            #expect(found.elements.count <= rows)
            elements += found.elements
            place = found.next
        } while place != nil
        return elements
    }

    static func changes(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        for (index, name) in ["a", "b", "a", "c", "a"].enumerated() {
            var change = Sample.change(name)
            if index == 2 { change.recordType = Sample.identifier("Poem") }
            _ = try await store.append(
                [ChangeToAppend(change, key: nil)], container: Sample.container,
                source: Sample.identifier(index == 3 ? "other" : "postgres"),
                at: Sample.moment(Int64(index)))
            _ = try await store.append(
                [Sample.unkeyed("a")], container: Sample.otherContainer, source: Sample.source,
                at: Sample.moment(9))
        }
        func listed(
            _ rows: Int = 2, _ set: (inout ChangeListFilter) -> Void = { _ in }
        ) async throws -> [UInt64] {
            var filter = ChangeListFilter()
            set(&filter)
            return try await all(by: rows) {
                try await store.listedChanges(of: Sample.container, filter, before: $0, $1)
            }.map(\.position.rawValue)
        }
        #expect(try await listed() == [9, 7, 5, 3, 1])
        #expect(try await listed(1) { $0.recordName = Sample.identifier("a") } == [9, 5, 1])
        #expect(
            try await listed {
                $0.recordName = Sample.identifier("a")
                $0.recordType = Sample.identifier("Poem")
            } == [5])
        #expect(
            try await listed(3) { $0.recordType = Sample.identifier("Artwork") } == [9, 7, 3, 1])
        #expect(try await listed { $0.source = Sample.identifier("other") } == [7])
        #expect(try await listed { $0.isStale = true } == [])
        #expect(try await listed { $0.user = Sample.identifier("nobody") } == [])
        let positions = try await store.positions(
            ofRecord: Sample.identifier("a"), nil, in: Sample.container, limit: 2)
        #expect(positions == [LogPosition(9), LogPosition(5)])
    }

    static func exceptions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await store.append(
            [Sample.unkeyed("a")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        var step = SettledStep(from: .start, to: .start)
        step.retries = (1...5).map { ProgressConformance.retry($0, dueAt: Int64($0)) }
        step.retries[4].delivery = Sample.owed(5, at: 2)
        step.deadLetters = (6...9).map {
            ProgressConformance.letter($0, reason: $0 == 7 ? "Expired" : "BadTopic")
        }
        try await store.settle(step)
        func filter(_ set: (inout DeliveryListFilter) -> Void = { _ in }) -> DeliveryListFilter {
            var filter = DeliveryListFilter()
            set(&filter)
            return filter
        }
        func retries(_ filter: DeliveryListFilter) async throws -> [UInt64] {
            try await all(by: 2) {
                try await store.listedRetries(of: Sample.container, filter, before: $0, $1)
            }.map { UInt64($0.delivery.delivery.ordinal.offset) }
        }
        func letters(_ filter: DeliveryListFilter) async throws -> [UInt64] {
            try await all(by: 1) {
                try await store.listedDeadLetters(of: Sample.container, filter, before: $0, $1)
            }.map { UInt64($0.delivery.delivery.ordinal.offset) }
        }
        let user = filter { $0.user = Sample.identifier("user-1") }
        let device = filter {
            $0.user = Sample.identifier("user-1")
            $0.device = Sample.identifier("device-3")
        }
        #expect(try await retries(filter()) == [5, 4, 3, 2, 1])
        #expect(try await retries(user) == [5, 4, 3, 2, 1])
        #expect(try await retries(device) == [3])
        #expect(try await retries(filter { $0.user = Sample.identifier("bob") }) == [])
        #expect(try await retries(filter { $0.positions = [LogPosition(2)] }) == [5])
        #expect(
            try await retries(filter { $0.recordType = Sample.identifier("Artwork") })
                == [4, 3, 2, 1])
        for type in ["Artwork", "Poem"] {
            let ofType = filter {
                $0.recordType = Sample.identifier(type)
                $0.positions = [LogPosition(1)]
            }
            #expect(try await retries(ofType) == (type == "Artwork" ? [4, 3, 2, 1] : []))
            #expect(try await letters(ofType) == (type == "Artwork" ? [9, 8, 7, 6] : []))
        }
        let expired = filter {
            $0.recordType = Sample.identifier("Artwork")
            $0.reason = "Expired"
        }
        #expect(try await letters(expired) == [7])
        #expect(try await letters(filter()) == [9, 8, 7, 6])
        #expect(try await letters(user) == [9, 8, 7, 6])
        #expect(try await letters(filter { $0.reason = "Expired" }) == [7])
        #expect(try await letters(filter { $0.positions = [LogPosition(1)] }) == [9, 8, 7, 6])
        // A redriven delivery still belongs to its user.
        _ = try await store.redriveDeadLetters(
            [Sample.deliveryID(6)], of: Sample.container, reason: nil, at: Sample.moment(50))
        #expect(try await retries(user) == [5, 6, 4, 3, 2, 1])
        #expect(try await letters(user) == [9, 8, 7])
    }

    static func receipts(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var from = ProgressMark.start
        for block in 0..<3 as Range<UInt64> {
            var step = SettledStep(from: from, to: ProgressConformance.mark(block + 1, 0))
            step.receipts = (0..<5).map { index in
                Sample.receipt(
                    block * 5 + index, index == 2 ? .deferred : .accepted, at: block + 1)
            }
            try await store.settle(step)
            from = step.to
        }
        func listed(
            _ rows: Int, _ set: (inout ReceiptListFilter) -> Void = { _ in }
        ) async throws -> [UInt64] {
            var filter = ReceiptListFilter()
            set(&filter)
            return try await all(by: rows) {
                try await store.listedReceipts(filter, before: $0, $1)
            }.map { UInt64($0.ordinal.offset) }
        }
        for rows in [1, 3, 5, 100] {
            #expect(try await listed(rows) == (0..<15).reversed())
            #expect(try await listed(rows) { $0.receipt.outcome = .deferred } == [12, 7, 2])
            #expect(
                try await listed(rows) { $0.positions = [LogPosition(2)] } == [9, 8, 7, 6, 5])
            #expect(try await listed(rows) { $0.devices = [3] } == [13, 8, 3])
            #expect(try await listed(rows) { $0.positions = [] } == [])
            #expect(try await listed(rows) { $0.container = Sample.container } == [])
        }
    }

    static func versions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        for number in 1...5 as ClosedRange<UInt8> {
            let user = number < 4 ? "ann" : "bob"
            _ = try await store.register(
                Sample.device("d\(number)", of: user, token: number), at: Sample.moment(1))
            _ = try await store.edit(
                [.create(Sample.subscription("s\(number)", artist: user, of: Sample.owner(user)))],
                of: Sample.owner(user), atomicity: .independent, at: Sample.moment(1))
            _ = try await store.park(
                ParkedChange(
                    container: Sample.container,
                    source: Sample.identifier(number < 4 ? "one" : "two"), reason: "r", path: "",
                    body: [number], headers: [:], receivedAt: Sample.moment(1)))
        }
        func devices(_ filter: DeviceListFilter) async throws -> [String] {
            try await all(by: 2) {
                try await store.listedDevices(of: Sample.container, filter, before: $0, $1)
            }.map(\.device.id.rawValue)
        }
        var filter = DeviceListFilter()
        #expect(try await devices(filter) == ["d5", "d4", "d3", "d2", "d1"])
        filter.user = Sample.identifier("bob")
        #expect(try await devices(filter) == ["d5", "d4"])
        filter = DeviceListFilter()
        filter.device = Sample.identifier("d2")
        #expect(try await devices(filter) == ["d2"])
        func subscriptions(_ filter: SubscriptionListFilter) async throws -> [String] {
            try await all(by: 2) {
                try await store.listedSubscriptions(of: Sample.container, filter, before: $0, $1)
            }.map(\.subscription.id.rawValue)
        }
        var wanted = SubscriptionListFilter()
        let every = try await subscriptions(wanted)
        #expect(every.first == "s4" && Set(every).count == every.count)
        wanted.recordType = Sample.identifier("Artwork")
        #expect(try await subscriptions(wanted) == every)
        wanted.user = Sample.identifier("ann")
        #expect(try await subscriptions(wanted) == ["s1"])
        wanted.recordType = Sample.identifier("Poem")
        #expect(try await subscriptions(wanted) == [])
        func parked(_ source: SourceName?) async throws -> [UInt8] {
            try await all(by: 2) {
                try await store.listedParked(of: Sample.container, source: source, before: $0, $1)
            }.map { $0.body[0] }
        }
        #expect(try await parked(nil) == [5, 4, 3, 2, 1])
        #expect(try await parked(Sample.identifier("two")) == [5, 4])
        let serials = try await store.serials(
            of: Sample.identifier("bob"), in: Sample.container, .devices(nil), limit: 9)
        let names = try await store.names(subscriptions: [1], devices: Set(serials))
        #expect(Set(names.devices.values.map(\.rawValue)) == ["d4", "d5"])
        #expect(names.subscriptions.values.map(\.owner.rawValue) == ["ann"])
    }
}
