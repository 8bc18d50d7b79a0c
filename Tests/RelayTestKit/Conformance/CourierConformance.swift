import RelayModel
import Storage
import Testing

/// The contract of ``Storage/CourierQueue``.
package enum CourierConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("queued notifications are taken once, in order", check: takenOnce),
        ConformanceCase("racing polls each take another notification", check: racingPolls),
        ConformanceCase("waiting notifications survive the end of the process", check: surviving),
        ConformanceCase(
            "a repeated delivery is not queued again, whether it was taken or not", check: repeated),
        ConformanceCase("a notification that is put back gets its old place", check: puttingBack),
        ConformanceCase("one courier serves several containers", check: severalContainers),
        ConformanceCase(
            "a token that moves to another user takes no notifications along", check: moving),
        ConformanceCase(
            "a device that creates a new token keeps its waiting notifications", check: recreating),
        ConformanceCase("a device that signed out gets no notifications", check: signingOut),
        ConformanceCase("waiting notifications are bounded by count and age", check: bounds),
        ConformanceCase(
            "deliveries to several couriers are bounded for each", check: boundsOfSeveral),
        ConformanceCase(
            "a notification replaces a waiting one with the same collapse ID", check: collapsing),
        ConformanceCase("a user has at most the maximum number of couriers", check: surplus),
        ConformanceCase("an idle courier ends with its device", check: idling),
        ConformanceCase(
            "a young idle courier ends with its device, an old one later", check: youth),
    ]

    private static let bounds = CourierBounds(count: 3, age: .seconds(100), gap: .seconds(10))

    /// Returns a courier device of a user.
    static func courier(
        _ name: String, of user: String, token byte: UInt8,
        in container: ContainerKey = Sample.container
    ) -> Device {
        var device = Sample.device(name, of: user, token: byte, in: container)
        device.gateway = .courier
        device.topic = "courier"
        return device
    }

    /// Returns a notification for a device, with its number as the payload.
    static func delivery(
        _ number: UInt64, to device: Device, collapseID: String? = nil,
        expiration: Timestamp? = nil
    ) -> CourierDelivery {
        CourierDelivery(
            deliveryID: DeliveryID(UUIDBytes(high: 1, low: number)),
            position: LogPosition(number), container: device.container, owner: device.owner,
            deviceID: device.id, collapseID: collapseID, expiration: expiration,
            payload: Array("{\"n\":\(number)}".utf8))
    }

    private static func queue(
        _ deliveries: [CourierDelivery], in store: any ConformingStore, at second: Int64 = 10
    ) async throws -> CourierQueueing {
        try await store.queue(deliveries, bounds: bounds, at: Sample.moment(second))
    }

    /// Takes everything that waits for a device, and returns the payloads, which are the numbers.
    private static func takeAll(
        _ device: Device, from store: any ConformingStore, at second: Int64 = 11
    ) async throws -> [String] {
        var texts: [String] = []
        while let taken = try await store.takeNotification(
            of: device.token, at: Sample.moment(second))
        {
            texts.append(
                String(decoding: taken.payload, as: UTF8.self).filter(\.isNumber))
        }
        return texts
    }

    static func takenOnce(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        let version = try await store.createCourier(for: tab, at: Sample.moment(1))
        #expect(version.device == tab)
        let result = try await queue([delivery(1, to: tab), delivery(2, to: tab)], in: store)
        #expect(result.outcomes == [.queued(tab.token), .queued(tab.token)])
        #expect(try await takeAll(tab, from: store) == ["1", "2"])
        #expect(try await takeAll(tab, from: store) == [])
        let standing = try await store.courier(tab.token)
        #expect(standing?.isRegistered == true)
        #expect(standing?.polledAt == Sample.moment(1))
        let bobs = courier("tab", of: "bob", token: 3)
        _ = try await store.createCourier(for: bobs, at: Sample.moment(1))
        let other = try await store.courier(bobs.token)
        #expect(other?.party?.container == standing?.party?.container)
        #expect(other?.party?.user != standing?.party?.user)
        #expect(try await store.courier(Sample.token(9)) == nil)
    }

    static func racingPolls(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        let many = CourierBounds(count: 1000)
        _ = try await store.queue(
            (1...60).map { delivery($0, to: tab) }, bounds: many, at: Sample.moment(2))
        let taken = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<8 { group.addTask { try await takeAll(tab, from: store) } }
            var all: [String] = []
            for try await some in group { all += some }
            return all
        }
        #expect(taken.count == 60)
        #expect(Set(taken).count == 60)
    }

    static func surviving(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: tab), delivery(2, to: tab)], in: store)
        let first = try await store.takeNotification(of: tab.token, at: Sample.moment(11))
        #expect(first != nil)
        let reopened = try await factory.reopen(store)
        #expect(try await takeAll(tab, from: reopened) == ["2"])
    }

    static func repeated(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: tab)], in: store)
        #expect(try await queue([delivery(1, to: tab)], in: store).outcomes == [.known])
        #expect(try await takeAll(tab, from: store) == ["1"])
        let reopened = try await factory.reopen(store)
        #expect(try await queue([delivery(1, to: tab)], in: reopened).outcomes == [.known])
        #expect(try await takeAll(tab, from: reopened) == [])
        // A crash may repeat a delivery until the progress has passed it, so the store still knows
        // it.
        let later = Sample.moment(10_000)
        _ = try await reopened.pruneCouriers(idleSince: Sample.moment(0), at: later, limit: 9)
        #expect(try await queue([delivery(1, to: tab)], in: reopened).outcomes == [.known])
        try await reopened.settle(
            SettledStep(
                from: .start, to: ProgressMark(position: LogPosition(1), offset: 0)))
        _ = try await reopened.pruneCouriers(idleSince: Sample.moment(0), at: later, limit: 9)
        let again = try await queue([delivery(1, to: tab)], in: reopened)
        #expect(again.outcomes == [.queued(tab.token)])
    }

    static func puttingBack(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: tab), delivery(2, to: tab)], in: store)
        let taken = try #require(
            try await store.takeNotification(of: tab.token, at: Sample.moment(11)))
        try await store.putBack(taken)
        try await store.putBack(taken)
        #expect(try await takeAll(tab, from: store) == ["1", "2"])
    }

    static func severalContainers(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        let other = courier("tab", of: "ann", token: 1, in: Sample.otherContainer)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await store.register(other, at: Sample.moment(2))
        _ = try await queue([delivery(1, to: tab), delivery(2, to: other)], in: store)
        #expect(try await takeAll(tab, from: store) == ["1", "2"])
        _ = try await queue([delivery(3, to: tab), delivery(4, to: other)], in: store)
        let isForgotten = try await store.forgetDevice(
            tab.id, of: tab.owner, in: Sample.container, at: Sample.moment(12))
        #expect(isForgotten)
        #expect(try await takeAll(tab, from: store) == ["4"])
        #expect(try await store.courier(tab.token)?.isRegistered == true)
    }

    static func moving(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let anns = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: anns, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: anns)], in: store)
        let bobs = courier("tab", of: "bob", token: 1)
        _ = try await store.register(bobs, at: Sample.moment(2))
        // A late delivery that was owed to ann under this token must not reach bob.
        let late = try await queue([delivery(2, to: anns)], in: store)
        #expect(late.outcomes == [.unregistered])
        _ = try await queue([delivery(3, to: bobs)], in: store)
        #expect(try await takeAll(bobs, from: store) == ["3"])
        _ = try await store.register(anns, at: Sample.moment(3))
        #expect(try await takeAll(anns, from: store) == [])
    }

    static func recreating(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let old = courier("tab", of: "ann", token: 1)
        let new = courier("tab", of: "ann", token: 2)
        _ = try await store.createCourier(for: old, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: old)], in: store)
        _ = try await store.createCourier(for: new, at: Sample.moment(2))
        let late = try await queue([delivery(2, to: old)], in: store)
        #expect(late.outcomes == [.queued(new.token)])
        #expect(try await takeAll(old, from: store) == [])
        #expect(try await store.courier(old.token) == nil)
        #expect(try await takeAll(new, from: store) == ["1", "2"])
        // A notification that was taken under the old token is not queued again under the new one.
        let newest = courier("tab", of: "ann", token: 3)
        _ = try await store.createCourier(for: newest, at: Sample.moment(12))
        let again = try await queue([delivery(1, to: newest)], in: store, at: 13)
        #expect(again.outcomes == [.known])
    }

    static func signingOut(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await queue([delivery(1, to: tab)], in: store)
        _ = try await store.forgetDevice(
            tab.id, of: tab.owner, in: Sample.container, at: Sample.moment(12))
        let late = try await queue([delivery(2, to: tab)], in: store)
        #expect(late.outcomes == [.unregistered])
        #expect(try await takeAll(tab, from: store) == [])
        // Signing in again does not bring back notifications that were dropped.
        _ = try await store.register(tab, at: Sample.moment(13))
        #expect(try await takeAll(tab, from: store) == [])
    }

    static func bounds(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        let result = try await queue((1...5).map { delivery($0, to: tab) }, in: store)
        #expect(result.dropped == 2)
        #expect(try await takeAll(tab, from: store) == ["3", "4", "5"])
        // A notification waits at most for the age (100 s) and at least for the gap (10 s),
        // whatever its expiration says.
        let expirations: [(UInt64, Timestamp?)] = [
            (6, nil), (7, Sample.moment(5)), (8, Sample.moment(50)), (9, Sample.moment(900)),
        ]
        let moments: [(Int64, [String])] = [
            (19, ["6", "7", "8", "9"]), (20, ["6", "8", "9"]), (50, ["6", "9"]), (110, []),
        ]
        for (moment, expected) in moments {
            let fresh = try await factory.makeReadyStore()
            _ = try await fresh.createCourier(for: tab, at: Sample.moment(1))
            _ = try await fresh.queue(
                expirations.map { delivery($0.0, to: tab, expiration: $0.1) },
                bounds: CourierBounds(count: 9, age: .seconds(100), gap: .seconds(10)),
                at: Sample.moment(10))
            #expect(try await takeAll(tab, from: fresh, at: moment) == expected, "at \(moment)")
        }
    }

    static func boundsOfSeveral(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tabs = (1...3).map { courier("tab-\($0)", of: "ann", token: UInt8($0)) }
        for tab in tabs { _ = try await store.createCourier(for: tab, at: Sample.moment(1)) }
        // The first gets five, the second four and the third two, of which three may wait.
        let numbers: [[UInt64]] = [[1, 2, 3, 4, 5], [11, 12, 13, 14], [21, 22]]
        let deliveries = zip(tabs, numbers).flatMap { tab, numbers in
            numbers.map { delivery($0, to: tab) }
        }
        let result = try await queue(deliveries, in: store)
        #expect(result.dropped == 3)
        #expect(try await takeAll(tabs[0], from: store) == ["3", "4", "5"])
        #expect(try await takeAll(tabs[1], from: store) == ["12", "13", "14"])
        #expect(try await takeAll(tabs[2], from: store) == ["21", "22"])
    }

    static func collapsing(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let tab = courier("tab", of: "ann", token: 1)
        _ = try await store.createCourier(for: tab, at: Sample.moment(1))
        _ = try await queue(
            [
                delivery(1, to: tab, collapseID: "score"), delivery(2, to: tab),
                delivery(3, to: tab, collapseID: "score"),
            ], in: store)
        #expect(try await takeAll(tab, from: store) == ["2", "3"])
    }

    static func surplus(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let limit = Limits.maximumCouriersPerUser
        for number in 0...limit {
            _ = try await store.createCourier(
                for: courier("tab-\(number)", of: "ann", token: UInt8(number + 1)),
                at: Sample.moment(Int64(number)))
            // The first courier is polled, so that it is not the one that was polled least
            // recently.
            try await store.notePoll(of: Sample.token(1), at: Sample.moment(1000))
        }
        let devices = try await store.devices(of: Sample.container, owner: nil, limit: 1000)
        #expect(devices.count == limit)
        #expect(!devices.map(\.device.id.rawValue).contains("tab-1"))
        // The courier is removed together with its device; otherwise clients could fill the store
        // with them.
        #expect(try await store.courier(Sample.token(2)) == nil)
        #expect(try await store.courier(Sample.token(3))?.isRegistered == true)
    }

    static func youth(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let young = courier("young", of: "ann", token: 1)
        let old = courier("old", of: "ann", token: 2)
        let shared = courier("shared", of: "ann", token: 3)
        let elsewhere = courier("shared", of: "ann", token: 3, in: Sample.otherContainer)
        _ = try await store.createCourier(for: old, at: Sample.moment(1))
        for device in [young, shared] {
            _ = try await store.createCourier(for: device, at: Sample.moment(5000))
        }
        _ = try await store.register(elsewhere, at: Sample.moment(5000))
        _ = try await queue([delivery(1, to: young)], in: store, at: 5001)
        for device in [young, old, shared] {
            let isForgotten = try await store.forgetDevice(
                device.id, of: device.owner, in: Sample.container, at: Sample.moment(5002))
            #expect(isForgotten)
        }
        #expect(try await store.courier(young.token) == nil)
        #expect(try await store.courier(old.token)?.isRegistered == false)
        #expect(try await store.courier(shared.token)?.isRegistered == true)
    }

    static func idling(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let idle = courier("idle", of: "ann", token: 1)
        let busy = courier("busy", of: "ann", token: 2)
        for device in [idle, busy] {
            _ = try await store.createCourier(for: device, at: Sample.moment(1))
        }
        try await store.notePoll(of: busy.token, at: Sample.moment(200_000))
        let now = Sample.moment(300_000)
        while try await store.pruneCouriers(
            idleSince: Sample.moment(100_000), at: now, limit: 10) > 0
        {}
        #expect(
            try await store.couriers(of: Sample.container, limit: 9).map(\.device.device) == [busy])
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 9).map(\.device)
                == [busy])
        #expect(try await store.courier(idle.token) == nil)
    }
}
