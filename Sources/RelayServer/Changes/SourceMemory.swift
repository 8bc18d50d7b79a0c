import ChangeSources
import RelayModel
import Storage
import Synchronization

/// Change sources as the decoding room knows them, so that a webhook need not read the definition
/// of its source again.
final class SourceMemory: Sendable {
    private struct Name: Hashable {
        let container: ContainerKey
        let source: SourceName
    }

    private struct Reading {
        let definition: JSONValue
        let source: ChangeSource
    }

    private let readings = Mutex<[Name: Reading]>([:])

    /// The source that `stored` defines.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a version that knew more.
    func source(_ stored: StoredSource) throws(JSONContractError) -> ChangeSource {
        let name = Name(container: stored.container, source: stored.name)
        let known = readings.withLock { $0[name] }
        if let known, known.definition.isSpelled(as: stored.definition) { return known.source }
        let source = try stored.changeSource()
        readings.withLock { $0[name] = Reading(definition: stored.definition, source: source) }
        return source
    }
}
