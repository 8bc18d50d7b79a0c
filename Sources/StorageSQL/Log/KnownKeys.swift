import FoundationEssentials
import RelayModel
import Storage

/// The remembered dedupe keys for one request, fetched from the engine at once.
///
/// No other request writes meanwhile, so the copy is exact if every key that the request itself
/// remembers is added to it.
struct KnownKeys {
    /// The entry of a remembered key.
    struct Place {
        /// The digest of the change as it was posted.
        let digest: Data
        /// The position of the change in the log.
        let position: LogPosition
        /// The moment until which the key is valid.
        let rememberedUntil: Int64

        /// Returns whether the entry yields to a new change with `key`, by the rule of
        /// ``AppendStatement/remember``.
        func givesWay(to key: DedupeKey, at now: Timestamp) -> Bool {
            rememberedUntil <= now.stored
                || key.kind == .content && digest != Data(key.digest)
        }
    }

    private var places: [StatementArguments: Place] = [:]

    /// Looks up keys with `statement`, whose arguments are their names.
    init(_ names: [StatementArguments], by statement: Statement) throws {
        for (name, row) in zip(names, try Row.fetchFirsts(statement, arguments: names)) {
            guard let row else { continue }
            places[name] = Place(
                digest: row["digest"], position: LogPosition(stored: row["position"]),
                rememberedUntil: row["rememberedUntil"])
        }
    }

    /// The entry of the key with this name.
    subscript(name: StatementArguments) -> Place? {
        get { places[name] }
        set { places[name] = newValue }
    }
}
