import RelayModel

/// One of the few that may read an index at the same time, with the memory that it works with.
///
/// `@unchecked Sendable`: the state is touched by whoever holds the lock alone.
final class IndexReader: @unchecked Sendable {
    /// What a reader works with.
    struct State: ~Copyable {
        /// The change in hand.
        var change: DecodedChange
        /// Candidates and answers.
        var scratch = MatchScratch()
        /// The keys of some changes, from which writers learn.
        var samples = KeySamples()

        init(threadTime: @escaping @Sendable () -> UInt64) {
            change = DecodedChange(threadTime: threadTime)
        }
    }

    private let lock = ThreadLock()
    @exclusivity(unchecked) private var state: State

    init(threadTime: @escaping @Sendable () -> UInt64) {
        state = State(threadTime: threadTime)
    }

    /// Reads, waiting until this reader is free.
    func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        lock.take()
        defer { lock.giveBack() }
        return body(&state)
    }

    /// Keeps this reader away until ``giveBack()``, and empties the reader.
    @inline(__always)
    func take(for content: IndexContent) {
        lock.take()
        content.takeOver(&state)
    }

    /// Lets it read again.
    @inline(__always)
    func giveBack() {
        lock.giveBack()
    }

    /// Reads if this reader is free.
    func withLockIfFree<Result>(_ body: (inout State) -> Result) -> Result? {
        guard lock.takeIfFree() else { return nil }
        defer { lock.giveBack() }
        return body(&state)
    }
}

/// The hashes of the keys of the first ``first`` changes, and then of one in ``interval``.
struct KeySamples: ~Copyable {
    /// One change of this many is sampled.
    static let interval: UInt32 = 64
    /// At the beginning this many are all sampled, so that something is known soon.
    static let first: UInt32 = 256
    /// Keys kept until a writer comes.
    static let most = 4096

    var hashes: [(plan: Int, hashes: [UInt32])] = []
    var kept = 0
    var turn: UInt32 = 0
}
