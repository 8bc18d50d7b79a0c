import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Users, devices and tokens under random sequences of events, compared with a model that is a
/// dictionary.
@Suite struct DeviceModelTests {
    private static let users = ["ann", "bob", "eve"]
    private static let names = ["phone", "pad", "tab"]
    private static let containers = [Sample.container, Sample.otherContainer]

    private struct Name: Hashable {
        let user: UserID
        let id: DeviceID
    }

    /// The expected state: the live devices of each container, by user and device ID.
    private struct Model {
        var devices: [ContainerKey: [Name: Device]] = [:]

        mutating func register(_ device: Device) {
            devices[device.container, default: [:]] = (devices[device.container] ?? [:]).filter {
                $0.value.token != device.token
            }
            devices[device.container]?[Name(user: device.owner, id: device.id)] = device
        }

        mutating func forget(_ device: Device) -> Bool {
            let name = Name(user: device.owner, id: device.id)
            return devices[device.container]?.removeValue(forKey: name) != nil
        }
    }

    private static func device(using generator: inout SeededGenerator) -> Device {
        let token = UInt8.random(in: 1...4, using: &generator)
        var device = Sample.device(
            pick(names, &generator), of: pick(users, &generator), token: token,
            in: pick(containers, &generator))
        device.gatewayEnvironment = Bool.random(using: &generator) ? .development : .production
        // Tokens 1 and 2 are couriers' tokens.
        if token <= 2 {
            device.gateway = .courier
            device.topic = "courier"
        }
        return device
    }

    private static func pick<Element>(
        _ all: [Element], _ generator: inout SeededGenerator
    ) -> Element {
        all[Int.random(in: 0..<all.count, using: &generator)]
    }

    private static func check(_ model: Model, _ store: RelayStore) async throws {
        for container in containers {
            let live = try await store.devices(of: container, owner: nil, limit: 100)
                .map(\.device)
            let expected = model.devices[container].map { Array($0.values) } ?? []
            #expect(Set(live) == Set(expected))
            #expect(Set(live.map(\.token)).count == live.count, "a token has two live owners")
            let names = Set(live.map { Name(user: $0.owner, id: $0.id) })
            #expect(names.count == live.count, "a device has two live tokens")
            let recovered = try await store.devices(
                activeAt: try await store.head(), after: 0, limit: 100
            ).map(\.device).filter { $0.container == container }
            #expect(Set(recovered) == Set(live))
            for user in users {
                let own = try await store.devices(
                    of: container, owner: Sample.identifier(user), limit: 100)
                #expect(own.allSatisfy { $0.device.owner.rawValue == user })
            }
        }
    }

    /// Checks that polling a courier returns only notifications of the device's present owner.
    private static func poll(_ store: RelayStore, _ model: Model, at second: Int64) async throws {
        for byte in [UInt8(1), 2] {
            let token = Sample.token(byte)
            let taken = try await store.takeNotification(of: token, at: Sample.moment(second))
            guard let taken else { continue }
            let text = String(decoding: taken.payload, as: UTF8.self)
            let isOwned = model.devices.values.flatMap(\.values).contains {
                $0.token == token && text == "\($0.container)/\($0.owner)"
            }
            #expect(isOwned, "\(text) reached \(byte)")
        }
    }

    @Test(arguments: 0..<12)
    func `a token never has two live owners, and nobody gets another's notification`(
        round: Int
    ) async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        for container in Self.containers {
            try await store.save(
                ContainerSettings(key: container, topics: ["a"]), at: Sample.moment(0))
        }
        for byte in [UInt8(1), 2] {
            var device = Sample.device("first", of: "ann", token: byte)
            device.gateway = .courier
            // The courier is old enough not to be deleted along with a device.
            _ = try await store.createCourier(for: device, at: Sample.moment(-7200))
            _ = try await store.forgetDevice(
                device.id, of: device.owner, in: Sample.container, at: Sample.moment(0))
        }
        var generator = SeededGenerator(seed: UInt64(round) &+ 77)
        var model = Model()
        for second in 1...60 {
            let now = Sample.moment(Int64(second))
            let device = Self.device(using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let version = try await store.register(device, at: now)
                #expect(version.device == device)
                model.register(device)
            case 2:
                let isForgotten = try await store.forgetDevice(
                    device.id, of: device.owner, in: device.container, at: now)
                let expected = model.forget(device)
                #expect(isForgotten == expected)
            case 3:
                _ = try await store.queue(
                    [
                        CourierDelivery(
                            deliveryID: DeliveryID(UUIDBytes(high: 1, low: UInt64(second))),
                            position: LogPosition(1), container: device.container,
                            owner: device.owner, deviceID: device.id,
                            payload: Array("\(device.container)/\(device.owner)".utf8))
                    ], bounds: CourierBounds(), at: now)
            default:
                try await Self.poll(store, model, at: Int64(second))
            }
            try await Self.check(model, store)
        }
        await store.close()
    }
}
