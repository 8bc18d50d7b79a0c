import DequeModule
import RelayModel
import Storage

/// What entries did to subscriptions, until the progress passes them.
struct WaitingFirings: Sendable {
    private var notes: Deque<FiringNote> = []
    private var count = 0

    /// Takes notes, unless too many wait; says whether it did.
    ///
    /// They come by ascending position, but for those of changes that were put off.
    mutating func add(_ new: [FiringNote]) -> Bool {
        guard count < Limits.maximumFiringsWaiting else { return false }
        for note in new {
            count += note.count
            let place = notes.lastIndex { $0.position <= note.position }.map { $0 + 1 } ?? 0
            notes.insert(note, at: place)
        }
        return true
    }

    /// Takes out those of the entries up to `position`.
    mutating func pass(upTo position: LogPosition) -> [FiringNote] {
        var passed: [FiringNote] = []
        while let note = notes.first, note.position <= position {
            notes.removeFirst()
            count -= note.count
            passed.append(note)
        }
        return passed
    }
}
