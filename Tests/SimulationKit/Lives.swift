import Foundation
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// Runs lives, each from its own seed on a store of its own.
package enum Lives {
    /// The number of random steps in a life, before the rest is settled.
    package static let steps = 150

    /// Runs one life.
    ///
    /// - Throws: ``BrokenPromise``, or an error of the store.
    package static func live(seed: UInt64) async throws -> LifeTally {
        try await live(seed: seed, on: try await emptyStore())
    }

    /// Creates a closed store with nothing but its schema.
    ///
    /// Creating the schema takes a third of the time of a life, so every life begins on a copy.
    private static func emptyStore() async throws -> TemporaryStore {
        let home = try TemporaryStore(in: .memory)
        await (try home.open()).close()
        return home
    }

    private static func live(
        seed: UInt64, on empty: TemporaryStore, withClients: Bool = false
    ) async throws -> LifeTally {
        let home = try TemporaryStore(in: .memory)
        defer {
            // A directory that cannot be removed here is removed when the process ends.
            try? FileManager.default.removeItem(
                at: URL(filePath: home.path).deletingLastPathComponent())
        }
        // The copy needs the database file and its witness.
        for ending in ["", "-witness"] {
            try FileManager.default.copyItem(
                atPath: empty.path + ending, toPath: home.path + ending)
        }
        return try await live(
            seed: seed, in: LifeHome(home), on: try home.open(), withClients: withClients)
    }

    /// Runs one life in its home, and closes the store.
    static func live(
        seed: UInt64, in home: LifeHome, on store: RelayStore, withClients: Bool
    ) async throws -> LifeTally {
        var simulation: Simulation
        do {
            simulation = try await Simulation(
                seed: seed, home: home, store: store, withClients: withClients)
        } catch {
            await store.close()
            throw error
        }
        do {
            let tally = try await simulation.run(steps: steps)
            await simulation.close()
            return tally
        } catch {
            await simulation.close()
            throw error
        }
    }

    /// Runs the life of every seed, several at a time, until all are over or five have broken a
    /// promise.
    ///
    /// - Parameters:
    ///   - seeds: The seeds of the lives.
    ///   - atOnce: How many lives run at a time.
    ///   - withClients: Whether connected clients take part.
    ///   - hear: Called with the tally of each life that ended, never concurrently.
    /// - Returns: The sum of the lives that kept the promises, and the broken promises, by seed.
    /// - Throws: An error of a store.
    package static func live(
        _ seeds: Range<UInt64>, atOnce: Int, withClients: Bool = false,
        hear: (LifeTally) -> Void = { _ in }
    ) async throws -> (tally: LifeTally, broken: [BrokenPromise]) {
        let empty = try await emptyStore()
        var rest = seeds.makeIterator()
        var all = LifeTally()
        var broken: [BrokenPromise] = []
        try await withThrowingTaskGroup(of: Result<LifeTally, BrokenPromise>.self) { group in
            func begin() {
                guard let seed = rest.next() else { return }
                group.addTask {
                    do {
                        return .success(
                            try await live(seed: seed, on: empty, withClients: withClients))
                    } catch let promise as BrokenPromise {
                        return .failure(promise)
                    }
                }
            }
            for _ in 0..<atOnce { begin() }
            while let life = try await group.next() {
                switch life {
                case .success(let tally):
                    all += tally
                    hear(all)
                case .failure(let promise): broken.append(promise)
                }
                if broken.count < 5 { begin() }
            }
        }
        return (all, broken.sorted { $0.seed < $1.seed })
    }
}
