import DequeModule
import RelayModel
import Storage

/// The firings of entries, until the progress passes them.
struct WaitingFirings: Sendable {
    private var notes: Deque<FiringNote> = []
    private var count = 0

    /// Adds notes, unless too many wait.
    ///
    /// Returns whether it did.
    ///
    /// Notes come by ascending position, except those of changes that were put off.
    mutating func add(_ new: [FiringNote]) -> Bool {
        guard count < Limits.maximumFiringsWaiting else { return false }
        for note in new {
            count += note.count
            let place = notes.lastIndex { $0.position <= note.position }.map { $0 + 1 } ?? 0
            notes.insert(note, at: place)
        }
        return true
    }

    /// Takes the notes of entries up to `position`.
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
