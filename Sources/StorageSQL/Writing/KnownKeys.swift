import FoundationEssentials
import RelayModel
import Storage

/// Remembered dedupe keys, fetched from the engine together.
///
/// No other commit writes meanwhile, so the copy is exact if every key that the commit itself
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

    /// The entries by name; `nil` for a key that is not remembered.
    private var places: [RowName: Place?] = [:]

    /// Looks up those of the named keys that were not looked up before, with `statement`, whose
    /// arguments are their names.
    mutating func lookUp(_ names: [RowName], by statement: Statement) throws {
        var asked: Set<RowName> = []
        let new = names.filter { places[$0] == nil && asked.insert($0).inserted }
        guard !new.isEmpty else { return }
        let rows = try Row.fetchFirsts(statement, arguments: new.map(\.arguments))
        for (name, row) in zip(new, rows) {
            places[name] = .some(
                row.map {
                    Place(
                        digest: $0["digest"], position: LogPosition(stored: $0["position"]),
                        rememberedUntil: $0["rememberedUntil"])
                })
        }
    }

    /// Returns the entry of a key that was looked up.
    func place(of name: RowName) -> Place? {
        guard let place = places[name] else { preconditionFailure("the key was not looked up") }
        return place
    }

    /// Adds the entry of a key that the commit remembers.
    mutating func note(_ place: Place, of name: RowName) {
        places[name] = .some(place)
    }
}
