import RelayModel
import Storage
import Testing

/// The contract of ``Storage/Registry`` about devices.
package enum DeviceConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("a registered device reads as it was registered", check: registering),
        ConformanceCase("the same registration refreshes only its moment", check: refreshing),
        ConformanceCase("a registration sets the badge once", check: badges),
        ConformanceCase("a token has one live owner", check: oneOwner),
        ConformanceCase("a device has one live token", check: oneToken),
        ConformanceCase("two users may have devices with the same ID", check: ownIDs),
        ConformanceCase("a forgotten device is removed", check: forgetting),
        ConformanceCase(
            "the devices active at a position are returned exactly", check: activeVersions),
    ]

    static func registering(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var device = Sample.device("phone", of: "ann", token: 1)
        device.topic = "com.example.Art.extension"
        let version = try await store.register(device, at: Sample.moment(5))
        #expect(version.device == device)
        #expect(version.registeredAt == Sample.moment(5))
        #expect(version.activation == LogPosition(1))
        let other = try await store.register(
            Sample.device("pad", of: "bob", token: 2), at: Sample.moment(6))
        let reopened = try await factory.reopen(store)
        let container = Sample.container
        #expect(
            try await reopened.devices(of: container, owner: nil, limit: 10) == [version, other])
        #expect(
            try await reopened.devices(of: container, owner: device.owner, limit: 10) == [version])
        #expect(try await reopened.devices(of: container, owner: nil, limit: 1) == [version])
        #expect(
            try await reopened.devices(of: Sample.otherContainer, owner: nil, limit: 10) == [])
        let entries = try await reopened.entries(after: .start, limit: 1)
        #expect(entries.map(\.body) == [.deviceSaved(version, replaced: [])])
    }

    static func refreshing(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let device = Sample.device("phone", of: "ann", token: 1)
        var version = try await store.register(device, at: Sample.moment(5))
        let again = try await store.register(device, at: Sample.moment(50))
        version.registeredAt = Sample.moment(50)
        #expect(again == version)
        let entries = try await store.entries(after: LogPosition(1), limit: 10)
        #expect(entries.map(\.body) == [.deviceSaved(version, replaced: [])])
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 10) == [version])
    }

    static func badges(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let device = Sample.device("phone", of: "ann", token: 1)
        var sparing = DeviceSparing()
        sparing.badge = 3
        let first = try await store.register(
            device, named: .device, sparing, at: Sample.moment(5))
        sparing.badge = 0
        let again = try await store.register(
            device, named: .device, sparing, at: Sample.moment(6))
        let plain = try await store.register(device, at: Sample.moment(7))
        #expect([first.badge, again.badge, plain.badge] == [3, 0, nil])
        #expect(first.serial == again.serial)
        let entries = try await store.entries(after: .start, limit: 10)
        #expect(
            entries.map(\.body) == [
                .deviceSaved(first, replaced: []), .deviceSaved(again, replaced: []),
                .deviceSaved(plain, replaced: []),
            ])
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 10) == [plain])
    }

    static func oneOwner(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(5))
        let second = try await store.register(
            Sample.device("phone", of: "bob", token: 1), at: Sample.moment(6))
        let third = try await store.register(
            Sample.device("other", of: "bob", token: 1), at: Sample.moment(7))
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 10) == [third])
        let entries = try await store.entries(after: LogPosition(1), limit: 10)
        #expect(
            entries.map(\.body) == [
                .deviceSaved(second, replaced: [first.serial]),
                .deviceSaved(third, replaced: [second.serial]),
            ])
        _ = try await store.register(
            Sample.device("phone", of: "ann", token: 1, in: Sample.otherContainer),
            at: Sample.moment(8))
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 10) == [third])
    }

    static func oneToken(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(5))
        let pad = try await store.register(
            Sample.device("pad", of: "ann", token: 2), at: Sample.moment(5))
        let moved = try await store.register(
            Sample.device("phone", of: "ann", token: 2), at: Sample.moment(6))
        let entries = try await store.entries(after: LogPosition(2), limit: 10)
        #expect(
            entries.map(\.body) == [.deviceSaved(moved, replaced: [phone.serial, pad.serial])])
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 10) == [moved])
    }

    static func ownIDs(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let anns = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(5))
        let bobs = try await store.register(
            Sample.device("phone", of: "bob", token: 2), at: Sample.moment(6))
        let container = Sample.container
        #expect(try await store.devices(of: container, owner: nil, limit: 10) == [anns, bobs])
        let entries = try await store.entries(after: LogPosition(1), limit: 10)
        #expect(entries.map(\.body) == [.deviceSaved(bobs, replaced: [])])
        let id = anns.device.id
        let holders = try await store.holders(of: id, in: container, limit: 10)
        #expect(holders == [anns.device.owner, bobs.device.owner])
        #expect(try await store.holders(of: id, in: container, limit: 1).count == 1)
        #expect(
            try await store.forgetDevice(
                id, of: bobs.device.owner, in: container, at: Sample.moment(7)))
        #expect(try await store.devices(of: container, owner: nil, limit: 10) == [anns])
        #expect(
            try await store.forgetDevice(
                id, of: bobs.device.owner, in: container, at: Sample.moment(8)) == false)
        #expect(
            try await store.holders(of: id, in: container, limit: 10) == [anns.device.owner])
    }

    static func forgetting(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(5))
        func forget(_ container: ContainerKey) async throws -> Bool {
            try await store.forgetDevice(
                phone.device.id, of: phone.device.owner, in: container, at: Sample.moment(6))
        }
        #expect(try await forget(Sample.otherContainer) == false)
        #expect(try await forget(Sample.container))
        #expect(try await forget(Sample.container) == false)
        let entries = try await store.entries(after: LogPosition(1), limit: 10)
        #expect(entries.map(\.body) == [.devicesEnded(serials: [phone.serial])])
        let again = try await store.register(phone.device, at: Sample.moment(7))
        #expect(again.serial > phone.serial)
    }

    static func activeVersions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        let second = try await store.register(
            Sample.device("phone", of: "ann", token: 2), at: Sample.moment(2))
        let pad = try await store.register(
            Sample.device("pad", of: "bob", token: 3), at: Sample.moment(3))
        _ = try await store.forgetDevice(
            second.device.id, of: second.device.owner, in: Sample.container,
            at: Sample.moment(4))
        let reopened = try await factory.reopen(store)
        let expected: [UInt64: [DeviceVersion]] = [
            0: [], 1: [first], 2: [second], 3: [second, pad], 4: [pad],
        ]
        for (position, versions) in expected {
            let active = try await reopened.devices(
                activeAt: LogPosition(position), after: 0, limit: 10)
            #expect(active == versions, "at position \(position)")
        }
        let page = try await reopened.devices(
            activeAt: LogPosition(3), after: second.serial, limit: 10)
        #expect(page == [pad])
    }
}
