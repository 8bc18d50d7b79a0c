import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL

@Suite struct EndedDevicesTests {
    private static func end(of serial: UInt64) -> StoredEntry {
        StoredEntry(
            entry: LogEntry(
                position: LogPosition(serial), appendedAt: Sample.moment(0),
                container: Sample.container, body: .devicesEnded(serials: [serial])),
            bytes: 0)
    }

    @Test func `an older answer of the registry does not replace a newer one`() {
        let ended = EndedDevices([1, 2])
        let count = ended.count
        // Reads run side by side. The second one here saw an earlier commit.
        ended.note(heirs: [1: 3])
        ended.note(heirs: [1: 2])
        #expect(!ended.hasEnded(1, since: count))
        ended.note([Self.end(of: 3)])
        #expect(ended.hasEnded(1, since: count))
    }
}
