#if canImport(Glibc)
    import Glibc
#endif

/// The constants of ``RowTest/member`` as they stand in a program: how many they are; of many,
/// where each begins, in an order in which one is found quickly; and they themselves as they were
/// written, because other dialects compare whole lists with them.
struct RowMembers {
    /// So many are looked at one by one.
    static let few = 16

    private let words: UnsafePointer<UInt32>
    /// How many constants there are.
    let count: Int

    @inline(__always)
    init(_ words: UnsafePointer<UInt32>) {
        self.words = words
        count = Int(words[0])
    }

    /// Whether there is a table of where they begin.
    @inline(__always)
    var hasTable: Bool { count > Self.few }

    /// Where the first constant begins.
    @inline(__always)
    var first: UnsafePointer<UInt32> { words + (hasTable ? 1 + count : 1) }

    /// Whether one of the constants in the table equals a scalar.
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
    /// A value that is looked for among constants; its bytes begin at `bytes`.
    init(_ slot: FieldSlot, bytes: UnsafePointer<UInt8>) {
        kind = slot.kind
        tail = slot.tail
        length = slot.length
        order = slot.order
        self.bytes = bytes
    }

    /// Below 0, 0 or above as this stands before, with or behind another in an order of scalars in
    /// which those stand together that rows take for equal, and which says nothing else.
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
    /// Begins a list of constants, with room for its table where it has one; says where.
    mutating func beginMembers(_ count: Int) -> Int {
        let start = constants.count
        constants.append(UInt32(count))
        if count > RowMembers.few {
            for _ in 0..<count { constants.append(0) }
        }
        return start
    }

    /// Fills the table of the list of constants that begins at `start`, all of which are there.
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
