import Synchronization

/// Whether the server was last seen without the synchronous standby that the operator requires.
///
/// All connections of a process share it: one that finds out keeps the others from committing.
final class StandbyRequirement: Sendable {
    private let isMissing = Atomic<Bool>(false)

    /// The reason as it is reported.
    static let sentence =
        "synchronous_standby_names is empty on the server, and storage.requireStandby is on: name "
        + "the standby there, or switch storage.requireStandby off"

    /// The query for whether the server waits for a standby.
    static let question = "SELECT current_setting('synchronous_standby_names') <> ''"

    /// Whether commits would not wait for a standby.
    var isBroken: Bool { isMissing.load(ordering: .relaxed) }

    /// Records what the server says.
    func note(isMissing value: Bool) { isMissing.store(value, ordering: .relaxed) }
}
