/// The answers that clients of a listener have not taken, which decides whose connection ends if
/// they are too much together.
///
/// An answer is in memory until the client's system has all of it. A client may ask for megabytes
/// on each of thousands of connections and read nothing.
///
/// It is a pure value.
struct UntakenAnswers<ID: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let address: ClientAddress?
        let bytes: Int
        /// The number of connections that had untaken answers before it.
        let turn: UInt64
    }

    private let most: Int
    private var entries: [ID: Entry] = [:]
    private var turn: UInt64 = 0
    /// The bytes of all untaken answers.
    private(set) var bytes = 0

    /// Creates a value that allows `most` bytes together, or one answer of any length.
    init(most: Int) {
        self.most = most
    }

    /// Notes how many bytes of answers a connection's client has not taken.
    ///
    /// - Returns: The connections that must end; they are not counted any more.
    mutating func note(_ bytes: Int, of id: ID, from address: ClientAddress?) -> [ID] {
        let former = entries[id]
        forget(id)
        guard bytes > 0 else { return [] }
        entries[id] = Entry(address: address, bytes: bytes, turn: former?.turn ?? turn)
        if former == nil { turn += 1 }
        self.bytes += bytes
        var ended: [ID] = []
        while self.bytes > most, let next = next(besides: id) {
            forget(next)
            ended.append(next)
        }
        return ended
    }

    /// Forgets a connection that is closed.
    mutating func forget(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        bytes -= entry.bytes
    }

    /// Returns the connection to end: of the address that leaves most untaken, the one that has
    /// done so for longest.
    private func next(besides id: ID) -> ID? {
        var sums: [ClientAddress?: Int] = [:]
        for entry in entries.values { sums[entry.address, default: 0] += entry.bytes }
        return entries.filter { $0.key != id }.min { first, second in
            let (one, other) = (first.value, second.value)
            let (little, much) = (sums[one.address] ?? 0, sums[other.address] ?? 0)
            return little == much ? one.turn < other.turn : little > much
        }?.key
    }
}

/// The bytes of answers that one connection's client has not taken.
///
/// It is a pure value.
struct AnswerBytes: Sendable {
    /// The number of bytes up to which they do not count: the system takes as many at once.
    private static let few = 64 * 1024

    private var current = 0
    private var untaken = 0
    private var isTold = false

    /// Adds a part of the current answer, and returns the bytes to count, if that is news.
    mutating func add(_ bytes: Int) -> Int? {
        current += bytes
        untaken += bytes
        return news
    }

    /// Ends the current answer, and returns its bytes.
    mutating func end() -> Int {
        defer { current = 0 }
        return current
    }

    /// Subtracts the bytes of an answer that was taken, and returns the bytes to count, if that is
    /// news.
    mutating func take(_ bytes: Int) -> Int? {
        untaken -= bytes
        return news
    }

    private var news: Int? {
        mutating get {
            let isMuch = untaken > Self.few
            defer { isTold = isMuch }
            guard isMuch || isTold else { return nil }
            return isMuch ? untaken : 0
        }
    }
}
