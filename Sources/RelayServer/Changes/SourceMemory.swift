import ChangeSources
import RelayModel
import Storage
import Synchronization

/// Change sources as the decoding room knows them, so that a webhook need not read the definition
/// of its source again.
final class SourceMemory: Sendable {
    private struct Reading {
        let definition: JSONValue
        let source: ChangeSource
    }

    private let readings = Mutex<[ContainerKey: [SourceName: Reading]]>([:])

    /// The source that `stored` defines, which is among those of its container, if these are given.
    ///
    /// What was read of sources that are there no longer is forgotten: whoever makes and deletes
    /// sources again and again would have it grow.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a version that knew more.
    func source(
        _ stored: StoredSource, among all: [StoredSource]? = nil
    ) throws(JSONContractError) -> ChangeSource {
        let known = readings.withLock { $0[stored.container]?[stored.name] }
        if let known, known.definition.isSpelled(as: stored.definition) { return known.source }
        let source = try stored.changeSource()
        let names = all.map { Set($0.map(\.name)) }
        readings.withLock { readings in
            var own = readings[stored.container] ?? [:]
            if let names { own = own.filter { names.contains($0.key) } }
            own[stored.name] = Reading(definition: stored.definition, source: source)
            readings[stored.container] = own
        }
        return source
    }

    /// How many sources of a container are known.
    func count(of container: ContainerKey) -> Int {
        readings.withLock { $0[container]?.count ?? 0 }
    }
}
