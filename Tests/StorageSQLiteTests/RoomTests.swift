import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// A lack of disk space is noticed without a write having failed.
@Suite struct RoomTests {
    @Test func `below the reserve there is no room even before a write has failed`() async throws {
        let home = try TemporaryStore()
        await (try home.open()).close()
        var settings = StoreSettings.forTests
        settings.diskReserveBytes = .max
        let store = try home.open(settings)
        #expect(store.shortage?.contains("bytes are free on the disk of") == true)
        await store.close()
        let other = try home.open()
        #expect(other.shortage == nil)
        await other.close()
    }

    @Test func `a full disk is remembered until a write fits again`() async throws {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        func append(_ name: String) async throws {
            _ = try await store.append(
                [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
                at: Sample.moment(0))
        }
        // SQLite reports this where a disk quota is reached, which the file system's free space
        // does not show.
        store.gate.count(StorageError.noRoom("the disk is full"))
        #expect(store.shortage == "the disk is full")
        try await append("a")
        #expect(store.shortage == nil)
        store.gate.count(StorageError.noRoom("the disk is full"))
        try await store.feelForRoom()
        #expect(store.shortage == nil)
        await store.close()
    }
}
