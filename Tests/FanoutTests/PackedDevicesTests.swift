import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// The devices of a container's users, in the follower's memory.
@Suite struct PackedDevicesTests {
    private static func version(_ serial: UInt64, of owner: String) -> DeviceVersion {
        DeviceVersion(
            serial: serial,
            device: Fixtures.device("d\(serial)", of: owner, token: Int(serial)),
            registeredAt: Fixtures.moment, activation: LogPosition(serial))
    }

    @Test func `devices are counted by user as they come and go`() throws {
        var devices = PackedDevices(container: Fixtures.container)
        for serial in UInt64(1)...5 {
            devices.insert(Self.version(serial, of: serial < 4 ? "ann" : "bob"))
        }
        #expect([devices.count(of: "ann"), devices.count(of: "bob")] == [3, 2])
        #expect(devices.count(of: "cho") == 0 && devices.mostOfOne == 3)
        // Removes the newest device of the list, and the oldest.
        devices.remove(3)
        devices.remove(1)
        devices.insert(Self.version(2, of: "ann"))
        #expect(devices.count(of: "ann") == 1)
        let left = devices.devices(of: Fixtures.identifier("ann")).map(\.serial)
        #expect(left == [2])
        let ann: UserID = Fixtures.identifier("ann")
        #expect(devices.hasDevice(Fixtures.identifier("d2"), of: ann))
        #expect(!devices.hasDevice(Fixtures.identifier("d1"), of: ann))
        #expect(!devices.hasDevice(Fixtures.identifier("d4"), of: ann))
        let again = try PackedDevices(container: Fixtures.container, image: devices.image)
        #expect([again.count(of: "ann"), again.count(of: "bob")] == [1, 2])
        #expect(again.mostOfOne == 2)
        devices.remove(2)
        #expect(devices.count(of: "ann") == 0)
    }

    @Test func `users of one name in two spellings have lists of their own`() {
        let names = ["zo\u{E9}", "zoe\u{301}"]
        var devices = PackedDevices(container: Fixtures.container)
        for serial in UInt64(1)...5 {
            devices.insert(Self.version(serial, of: names[serial < 4 ? 0 : 1]))
        }
        #expect(names.map { devices.count(of: $0) } == [3, 2])
        #expect(devices.mostOfOne == 3)
        devices.remove(4)
        #expect(names.map { devices.count(of: $0) } == [3, 1])
        let left = devices.devices(of: Fixtures.identifier(names[1])).map(\.serial)
        #expect(left == [5])
    }
}
