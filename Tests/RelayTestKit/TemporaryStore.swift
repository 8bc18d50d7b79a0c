import Foundation
package import Storage
package import StorageSQL
import StorageSQLite
import Synchronization

/// A store in a directory of its own, which is removed when the process ends.
///
/// It is not removed when the fixture is released, because the compiler may release a fixture
/// while its store is in use.
package final class TemporaryStore: Sendable {
    /// The database file.
    package let path: String

    /// The kind of place of a store's file.
    package enum Place: Sendable {
        /// The directory of temporary files.
        case disk
        /// Memory, where the system has such a folder, for tests whose simulated crashes end no
        /// process.
        case memory

        var directory: URL {
            let shared = self == .memory ? MemoryFolder.path : nil
            return shared.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory
        }
    }

    /// Makes an empty directory without opening a store.
    package init(in place: Place = .disk) throws {
        let directory = place.directory
            .appending(path: "belfry-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "belfry.sqlite").path
        TemporaryDirectories.add(directory)
    }

    /// Opens the store, for the first time or again after it was closed.
    package func open(_ settings: StoreSettings = .forTests) throws -> RelayStore {
        try RelayStore.open(path: path, settings: settings)
    }

    /// Opens the store, and saves the container of `Sample` in it.
    package func openReady(_ settings: StoreSettings = .forTests) async throws -> RelayStore {
        let store = try open(settings)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        return store
    }
}

extension StoreSettings {
    /// The defaults, but without a reserve of free disk space, which a test machine may not have.
    package static var forTests: StoreSettings {
        var settings = StoreSettings()
        settings.diskReserveBytes = 0
        return settings
    }
}

/// The directories to remove when the process ends.
private enum TemporaryDirectories {
    private static let all = Mutex<[URL]>([])

    static func add(_ directory: URL) {
        let isFirst = all.withLock { all in
            all.append(directory)
            return all.count == 1
        }
        if isFirst { atexit { TemporaryDirectories.remove() } }
    }

    private static func remove() {
        for directory in all.withLock({ $0 }) {
            try? FileManager.default.removeItem(at: directory)
        }
    }
}
