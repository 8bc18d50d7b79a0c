import Live
import NIOCore

/// The queue of what goes out to one client.
///
/// A result waits as a whole, and its frames are made one by one once there is room for them. A
/// frame for this client alone is also kept as it is, because it may share its text with frames for
/// other returning clients.
struct LiveOutbox<Piece: Sendable>: Sendable {
    /// An entry; results are stored indirectly, so that an entry is no larger than a piece.
    private enum Entry {
        case piece(Piece)
        case frame(LiveFrame)
        indirect case result(LiveResult, weight: Int)
        indirect case mark(LiveMark)
    }

    /// The bytes of the waiting pieces and frames, without results.
    private(set) var bytes = 0
    /// The bytes that the waiting results keep in memory; their frames are not written yet.
    private(set) var resultBytes = 0
    /// The bytes of the frames for this client alone, which are part of `bytes`.
    private(set) var ownBytes = 0
    /// The entries; most connections never have more than one waiting, so there is room for one.
    private var entries = CircularBuffer<Entry>(initialCapacity: 1)
    private let make: @Sendable (LiveFrame) -> Piece
    private let size: @Sendable (Piece) -> Int

    /// Creates a queue that makes pieces of frames by `make`, each of `size` bytes.
    init(
        _ make: @escaping @Sendable (LiveFrame) -> Piece,
        size: @escaping @Sendable (Piece) -> Int
    ) {
        self.make = make
        self.size = size
    }

    var isEmpty: Bool { entries.isEmpty }

    /// Whether more waits than a client may leave untaken: 32 MiB.
    var isOverfull: Bool { bytes + resultBytes > 32 * 1024 * 1024 }

    mutating func append(_ piece: Piece) {
        bytes += size(piece)
        entries.append(.piece(piece))
    }

    mutating func append(own frame: LiveFrame) {
        bytes += frame.count
        ownBytes += frame.count
        entries.append(.frame(frame))
    }

    mutating func append(_ result: LiveResult) {
        let weight = result.weight
        resultBytes += weight
        entries.append(.result(result, weight: weight))
    }

    /// Weighs the results again; they take more memory when what they show has been replaced.
    mutating func weighResults() {
        guard resultBytes > 0 else { return }
        resultBytes = 0
        for index in entries.indices {
            guard case .result(let result, _) = entries[index] else { continue }
            let weight = result.weight
            resultBytes += weight
            entries[index] = .result(result, weight: weight)
        }
    }

    /// Reaches `mark` once everything before it has been taken.
    mutating func append(_ mark: LiveMark) {
        if entries.isEmpty { mark.reach() } else { entries.append(.mark(mark)) }
    }

    /// Removes and returns the next piece; `nil` if nothing waits.
    mutating func next() -> Piece? {
        while let first = entries.popFirst() {
            switch first {
            case .piece(let piece):
                bytes -= size(piece)
                return piece
            case .frame(let frame):
                bytes -= frame.count
                ownBytes -= frame.count
                return make(frame)
            case .mark(let mark): mark.reach()
            case .result(var result, let weight):
                guard let frame = result.next() else {
                    resultBytes -= weight
                    continue
                }
                entries.prepend(.result(result, weight: weight))
                return make(frame)
            }
        }
        return nil
    }

    mutating func removeAll() {
        entries.removeAll()
        (bytes, ownBytes, resultBytes) = (0, 0, 0)
    }
}
