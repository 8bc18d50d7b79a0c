import RelayModel

/// A slot for one thread that reads an index, with the working memory of that thread; an index has
/// a few of them.
///
/// `@unchecked Sendable`: only the holder of the lock touches the state.
final class IndexReader: @unchecked Sendable {
    /// The working memory of a reader.
    struct State: ~Copyable {
        /// The current change.
        var change: DecodedChange
        /// The candidates and answers of the current change.
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

    /// Runs `body` with this reader's state, after waiting until the reader is free.
    func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        lock.take()
        defer { lock.giveBack() }
        return body(&state)
    }

    /// Locks this reader until ``giveBack()``, and moves what it has collected into `content`.
    @inline(__always)
    func take(for content: IndexContent) {
        lock.take()
        content.takeOver(&state)
    }

    /// Unlocks this reader.
    @inline(__always)
    func giveBack() {
        lock.giveBack()
    }

    /// Runs `body` with this reader's state if the reader is free; otherwise returns `nil`.
    func withLockIfFree<Result>(_ body: (inout State) -> Result) -> Result? {
        guard lock.takeIfFree() else { return nil }
        defer { lock.giveBack() }
        return body(&state)
    }
}

/// The hashes of the keys of the ``first`` changes, and then of one change in every ``interval``.
struct KeySamples: ~Copyable {
    /// One change in this number is sampled.
    static let interval: UInt32 = 64
    /// The number of changes at the beginning that are all sampled, so that something is known
    /// soon.
    static let first: UInt32 = 256
    /// The maximum number of keys that are kept until a writer takes them.
    static let most = 4096

    var hashes: [(plan: Int, hashes: [UInt32])] = []
    var kept = 0
    var turn: UInt32 = 0
}
