import FoundationEssentials
import RelayModel
import Storage

/// Remembered dedupe keys, fetched from the engine together.
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

    private var places = LookedUpRows<Place>()

    /// Looks up those of the named keys that were not looked up before, with `statement`, whose
    /// arguments are their names.
    mutating func lookUp(_ names: [RowName], by statement: Statement) throws {
        try places.lookUp(names, by: statement) {
            Place(
                digest: $0["digest"], position: LogPosition(stored: $0["position"]),
                rememberedUntil: $0["rememberedUntil"])
        }
    }

    /// Returns the entry of a key that was looked up.
    func place(of name: RowName) -> Place? { places[name] }

    /// Adds the entry of a key that the commit remembers.
    mutating func note(_ place: Place, of name: RowName) { places.note(place, of: name) }
}
