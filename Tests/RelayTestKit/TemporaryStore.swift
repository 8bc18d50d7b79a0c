import Foundation
import RelayModel
package import Storage

/// A store in a directory of its own, which goes when the fixture goes.
package final class TemporaryStore: Sendable {
    /// The database file.
    package let path: String
    private let directory: URL

    /// Makes an empty directory; nothing is opened yet.
    package init() throws {
        directory = FileManager.default.temporaryDirectory
            .appending(path: "belfry-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "belfry.sqlite").path
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    /// Opens the store, for the first time or again after it was closed.
    package func open(_ settings: StoreSettings = .forTests) throws -> RelayStore {
        try RelayStore.open(path: path, settings: settings)
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
