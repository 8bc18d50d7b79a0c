import Foundation
package import Storage
package import StorageSQL
import StorageSQLite
import Synchronization

/// A store in a directory of its own, which goes when the process ends.
///
/// Not when the fixture goes: the compiler may let go of a fixture while its store is in use.
package final class TemporaryStore: Sendable {
    /// The database file.
    package let path: String

    /// Where a store's file is.
    package enum Place: Sendable {
        /// Among the temporary files.
        case disk
        /// In memory where the system has such a place, for tests whose crashes end no process.
        case memory

        var directory: URL {
            let shared = self == .memory ? MemoryFolder.path : nil
            return shared.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory
        }
    }

    /// Makes an empty directory; nothing is opened yet.
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

    /// Opens the store, and makes the container of the samples in it.
    package func openReady(_ settings: StoreSettings = .forTests) async throws -> RelayStore {
        let store = try open(settings)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        return store
    }
}

extension StoreSettings {
    /// The defaults, on whatever room the disk of a test machine has.
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
