import Foundation
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// Many lives, each from its own seed on a store of its own.
package enum Lives {
    /// Steps of a life, before what is left is settled.
    package static let steps = 150

    /// Lives one life.
    ///
    /// - Throws: ``BrokenPromise``, or what the store throws.
    package static func live(seed: UInt64) async throws -> LifeTally {
        try await live(seed: seed, on: try await emptyStore())
    }

    /// A closed store with nothing but its schema.
    ///
    /// Making that takes a third of the time of a life, so that lives begin on a copy.
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
            // What remains is removed when the process ends.
            try? FileManager.default.removeItem(
                at: URL(filePath: home.path).deletingLastPathComponent())
        }
        // The file, and the witness that belongs to it.
        for ending in ["", "-witness"] {
            try FileManager.default.copyItem(
                atPath: empty.path + ending, toPath: home.path + ending)
        }
        let store = try home.open()
        let tally: LifeTally
        do {
            var simulation = try await Simulation(
                seed: seed, store: store, withClients: withClients)
            tally = try await simulation.run(steps: steps)
        } catch {
            await store.close()
            throw error
        }
        await store.close()
        return tally
    }

    /// Lives the life of every seed, some at a time, until all are over or five are broken.
    ///
    /// - Parameters:
    ///   - seeds: Which lives.
    ///   - atOnce: How many lives run at a time.
    ///   - withClients: Whether connected clients live along.
    ///   - hear: Is told of each life that ended; never by two at a time.
    /// - Returns: What happened in the lives that kept the promises, and the promises that were
    ///   broken, by seed.
    /// - Throws: What a store throws.
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
