import RelayModel
import Synchronization

/// Where one reader at a time sits: its permission to read, and the memory it works with.
final class ReadingDesk: Sendable {
    /// What a reader works with.
    struct State: ~Copyable {
        /// The change in hand.
        var change = DecodedChange()
        /// Candidates and answers.
        var scratch = MatchScratch()
        /// The keys of some changes, from which writers learn.
        var samples = KeySamples()
    }

    let state = Mutex(State())
}

/// The hashes of the keys of every so many-th change.
struct KeySamples: ~Copyable {
    /// One change in so many is sampled.
    static let interval: UInt32 = 64
    /// Keys kept until a writer comes.
    static let most = 4096

    var hashes: [[UInt32]] = []
    var kept = 0
    var turn: UInt32 = 0
}
