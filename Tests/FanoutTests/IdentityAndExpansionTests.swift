import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

@Suite struct DeliveryIdentityTests {
    private let identity = DeliveryIdentity(store: UUIDBytes(high: 1, low: 2))

    /// Returns the identities for all combinations of small parts.
    private func identities(of identity: DeliveryIdentity) -> [UUIDBytes] {
        var all: [UUIDBytes] = []
        for position in 1...6 as ClosedRange<UInt64> {
            for subscription in 1...6 as ClosedRange<UInt64> {
                for device in 1...6 as ClosedRange<UInt64> {
                    let id = identity.deliveryID(
                        position: LogPosition(position), subscriptionSerial: subscription,
                        deviceSerial: device)
                    all.append(id.uuid)
                }
            }
            for owner in ["alice", "bob", "alicf"] {
                all.append(
                    identity.notificationID(
                        position: LogPosition(position), owner: Fixtures.identifier(owner)))
            }
        }
        return all
    }

    @Test func `identities are distinct, also across stores`() {
        let other = DeliveryIdentity(store: UUIDBytes(high: 2, low: 1))
        let all = identities(of: identity) + identities(of: other)
        #expect(Set(all).count == all.count)
        #expect(all.count == 2 * 6 * (36 + 3))
    }

    @Test func `identities are UUIDs of version 8`() {
        for uuid in identities(of: identity) {
            #expect(uuid.high >> 12 & 0xF == 8)
            #expect(uuid.low >> 62 == 0b10)
        }
    }

    /// The identities are the same at any time and on any machine.
    ///
    /// If the computation changed, deliveries in flight during an update would be sent again under
    /// another identity.
    @Test func `identities do not change`() {
        let delivery = identity.deliveryID(
            position: LogPosition(3), subscriptionSerial: 4, deviceSerial: 5)
        let notification = identity.notificationID(
            position: LogPosition(3), owner: Fixtures.identifier("alice"))
        #expect(delivery.description == "56caaaa3-8541-8c1f-91f6-1f549992dd40")
        #expect(notification.description == "11bf2ba5-dec2-80af-9ef6-6c2a73ba13cd")
    }
}

@Suite struct DeviceExpansionTests {
    private let devices = [version(1, "phone"), version(2, "tablet")]

    private func names(
        suppress: OriginSuppression, device: String? = nil, user: String? = nil
    ) -> [String] {
        var subscription = Fixtures.subscription("s1")
        subscription.suppress = suppress
        var change = Fixtures.change(.delete)
        change.origin = ChangeOrigin(
            deviceID: device.map { Fixtures.identifier($0) },
            userID: user.map { Fixtures.identifier($0) })
        return DeviceExpansion.devices(among: devices, for: subscription, of: change)
            .map(\.device.id.rawValue)
    }

    @Test func `the device that made the change is left out, also for a deletion`() {
        #expect(names(suppress: .device, device: "phone", user: "alice") == ["tablet"])
    }

    @Test func `an origin device that another user claims is not left out`() {
        #expect(names(suppress: .device, device: "phone", user: "bob") == ["phone", "tablet"])
        #expect(names(suppress: .device, device: "phone") == ["tablet"])
    }

    @Test func `all devices of the origin's client are left out with it`() {
        let devices = [
            version(1, "page"), version(2, "page~token-0a1b2c3d"),
            version(3, "page~token-0a1b"), version(4, "pages~token-0a1b2c3d"),
        ]
        for origin in ["page", "page~token-0a1b2c3d", "page~token-ffffffff"] {
            var change = Fixtures.change(.update)
            change.origin = ChangeOrigin(deviceID: Fixtures.identifier(origin), userID: nil)
            let left = DeviceExpansion.devices(
                among: devices, for: Fixtures.subscription("s1"), of: change)
            #expect(
                left.map(\.device.id.rawValue) == ["page~token-0a1b", "pages~token-0a1b2c3d"])
        }
    }

    @Test func `the devices reported as suppressed are those left out`() {
        let all = [
            version(1, "page~token-0a1b2c3d"), version(2, "pages"),
            version(3, "page~token-11223344"),
        ]
        for (origin, user, expected) in [
            ("page", "alice", [0, 2]), ("page~token-ffffffff", nil, [0, 2]), ("pages", nil, [1]),
            ("page", "bob", []), ("desk", "alice", []),
        ] as [(String, String?, [Int])] {
            var change = Fixtures.change(.update)
            change.origin = ChangeOrigin(
                deviceID: Fixtures.identifier(origin), userID: user.map { Fixtures.identifier($0) })
            var fanout = ChangeFanout(
                of: change, at: LogPosition(1), appendedAt: Fixtures.moment,
                identity: DeliveryIdentity(store: UUIDBytes(high: 1, low: 2)),
                settings: Composition.settings, firstOffset: 0)
            fanout.append(Fixtures.subscription("s1"), serial: 1, to: all, BadgeCounts())
            #expect(
                fanout.takeSuppressed().map(\.deviceID) == expected.map { all[$0].device.id },
                "\(origin) of \(user ?? "nobody")")
            #expect(fanout.takeSuppressed() == [])
        }
    }

    @Test func `no device is left out if the origin is unknown`() {
        #expect(names(suppress: .device) == ["phone", "tablet"])
        #expect(names(suppress: .device, user: "alice") == ["phone", "tablet"])
        #expect(names(suppress: .device, device: "other") == ["phone", "tablet"])
    }

    @Test func `a subscription may leave out all devices of the user, or none`() {
        #expect(names(suppress: .user, device: "phone", user: "alice") == [])
        #expect(names(suppress: .user, device: "desk", user: "bob") == ["phone", "tablet"])
        #expect(names(suppress: .none, device: "phone", user: "alice") == ["phone", "tablet"])
    }

    @Test(
        arguments: [
            (nil, true), (["world"], true), (["bob", "alice"], true), (["bob"], false), ([], false),
            (["Alice"], false),
        ] as [([String]?, Bool)])
    func `a list of readers decides who may read a change`(readers: [String]?, mayRead: Bool) {
        var change = Fixtures.change()
        change.readers = readers
        #expect(change.mayRead(Fixtures.identifier("alice")) == mayRead)
        change.readersBefore = readers
        #expect(change.mightRead(Fixtures.identifier("alice")) == mayRead)
    }
}
