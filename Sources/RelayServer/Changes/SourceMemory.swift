import ChangeSources
import RelayModel
import Storage
import Synchronization

/// A cache of decoded change sources, so that a webhook need not parse the definition of its
/// source.
final class SourceMemory: Sendable {
    private struct Reading {
        let definition: JSONValue
        let source: ChangeSource
    }

    private let readings = Mutex<[ContainerKey: [SourceName: Reading]]>([:])

    /// Returns the source that `stored` defines.
    ///
    /// `all` are the stored sources of the container, if they are known. If there are more entries
    /// than these, those of other sources are removed, so that creating and deleting sources does
    /// not fill the memory.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a newer version of Belfry.
    func source(
        _ stored: StoredSource, among all: [StoredSource]? = nil
    ) throws(JSONContractError) -> ChangeSource {
        let known = readings.withLock { $0[stored.container]?[stored.name] }
        // A definition may have megabytes, and the store returns copies of it until it reads it
        // again.
        if let known, known.definition.isCopy(of: stored.definition) { return known.source }
        let isKnown = known?.definition.isSpelled(as: stored.definition) == true
        let source = if let known, isKnown { known.source } else { try stored.changeSource() }
        let reading = Reading(definition: stored.definition, source: source)
        readings.withLock { readings in
            readings[stored.container, default: [:]][stored.name] = reading
            // Not each time: a thousand sources may be asked for one after the other.
            guard let all, let own = readings[stored.container], own.count > all.count else {
                return
            }
            let names = Set(all.map(\.name))
            readings[stored.container] = own.filter { names.contains($0.key) }
        }
        return source
    }

    /// Returns the number of cached sources of a container.
    func count(of container: ContainerKey) -> Int {
        readings.withLock { $0[container]?.count ?? 0 }
    }
}
