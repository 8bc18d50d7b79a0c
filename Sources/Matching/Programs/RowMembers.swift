#if canImport(Glibc)
    import Glibc
#endif

/// The constants of ``RowTest/member`` in a program: their number; if there are many, a sorted
/// table of their starts for binary search; then the constants in their written order, because
/// other dialects compare whole lists with them.
struct RowMembers {
    /// Up to this number, constants are compared one by one.
    static let few = 16

    private let words: UnsafePointer<UInt32>
    /// The number of constants.
    let count: Int

    @inline(__always)
    init(_ words: UnsafePointer<UInt32>) {
        self.words = words
        count = Int(words[0])
    }

    /// Whether there is a table of their starts.
    @inline(__always)
    var hasTable: Bool { count > Self.few }

    /// The start of the first constant.
    @inline(__always)
    var first: UnsafePointer<UInt32> { words + (hasTable ? 1 + count : 1) }

    /// Returns whether one of the constants in the table equals a scalar.
    func contains(_ wanted: RowConstant) -> Bool {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            let order = RowConstant(words + Int(words[1 + middle])).compared(with: wanted)
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }
}

extension RowConstant {
    /// Creates a value to look for among constants; its bytes begin at `bytes`.
    init(_ slot: FieldSlot, bytes: UnsafePointer<UInt8>) {
        kind = slot.kind
        tail = slot.tail
        length = slot.length
        order = slot.order
        self.bytes = bytes
    }

    /// Returns a number below, equal to or above 0 for the order of two scalars.
    ///
    /// The order serves only the search: scalars that rows take for equal compare as equal, and it
    /// has no other meaning.
    func compared(with other: RowConstant) -> Int {
        if kind != other.kind { return Int(kind.rawValue) - Int(other.kind.rawValue) }
        switch kind {
        case .null: return 0
        case .number, .date:
            if order != other.order { return order < other.order ? -1 : 1 }
            return Int(tail) - Int(other.tail)
        default:
            if length != other.length { return length < other.length ? -1 : 1 }
            return Int(memcmp(bytes, other.bytes, Int(length)))
        }
    }
}

extension ProgramDraft {
    /// Begins a list of constants, with room for its table if it needs one, and returns its start.
    mutating func beginMembers(_ count: Int) -> Int {
        let start = constants.count
        constants.append(UInt32(count))
        if count > RowMembers.few {
            for _ in 0..<count { constants.append(0) }
        }
        return start
    }

    /// Fills the table of the list that begins at `start`, after all its constants were appended.
    mutating func endMembers(_ start: Int) {
        let list = UnsafePointer(constants.base + start)
        let members = RowMembers(list)
        guard members.hasTable else { return }
        var table = UnsafeMutableBufferPointer(
            start: constants.base + start + 1, count: members.count)
        var place = members.first
        for index in 0..<members.count {
            table[index] = UInt32(place - list)
            place += RowConstant(place).words
        }
        table.sort { RowConstant(list + Int($0)).compared(with: RowConstant(list + Int($1))) < 0 }
    }
}
