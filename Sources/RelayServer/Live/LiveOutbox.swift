import Live
import NIOCore

/// What waits to go out to one client, in order.
///
/// A result waits as it is: its frames are made one by one, once there is room for them. So does a
/// frame of its own, whose text it may have in common with others who come back.
struct LiveOutbox<Piece: Sendable>: Sendable {
    /// Results stand apart, so that an entry has the size of a piece.
    private enum Entry {
        case piece(Piece)
        case frame(LiveFrame)
        indirect case result(LiveResult, weight: Int)
        indirect case mark(LiveMark)
    }

    /// The bytes of the pieces that wait; those of results do not count.
    private(set) var bytes = 0
    /// What the results take that wait, of which nothing is written.
    private(set) var resultBytes = 0
    /// Those of its own frames among them.
    private(set) var ownBytes = 0
    /// With room for one, which is all that most connections ever have waiting.
    private var entries = CircularBuffer<Entry>(initialCapacity: 1)
    private let make: @Sendable (LiveFrame) -> Piece
    private let size: @Sendable (Piece) -> Int

    /// Makes pieces of frames by `make`, each of `size` bytes.
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

    /// Weighs the results anew: as what they show is replaced they take more.
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

    /// Has `mark` reached once all before it has been taken.
    mutating func append(_ mark: LiveMark) {
        if entries.isEmpty { mark.reach() } else { entries.append(.mark(mark)) }
    }

    /// The next piece; `nil` when nothing waits.
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
