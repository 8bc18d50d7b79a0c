import FoundationEssentials
import RelayModel
import Storage

/// What is remembered of the keys of one request, asked of the engine at once.
///
/// Nobody else writes meanwhile, so that it is exact as long as it hears what the request itself
/// remembers.
struct KnownKeys {
    /// What is remembered of a key.
    struct Place {
        /// Of the change, as it was posted.
        let digest: Data
        /// Where it stands in the log.
        let position: LogPosition
        /// Until when the key holds.
        let rememberedUntil: Int64

        /// Whether it gives way to what is said now, by the rule of ``AppendStatement/remember``.
        func givesWay(to key: DedupeKey, at now: Timestamp) -> Bool {
            rememberedUntil <= now.stored
                || key.kind == .content && digest != Data(key.digest)
        }
    }

    private var places: [StatementArguments: Place] = [:]

    /// Looks for keys by `statement`, whose arguments are their names.
    init(_ names: [StatementArguments], by statement: Statement) throws {
        for (name, row) in zip(names, try Row.fetchFirsts(statement, arguments: names)) {
            guard let row else { continue }
            places[name] = Place(
                digest: row["digest"], position: LogPosition(stored: row["position"]),
                rememberedUntil: row["rememberedUntil"])
        }
    }

    /// What is remembered of a key, by its name.
    subscript(name: StatementArguments) -> Place? {
        get { places[name] }
        set { places[name] = newValue }
    }
}
