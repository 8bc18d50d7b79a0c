import PredicateLanguage
import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// The answer of one row.
enum RowAnswer {
    case holds
    case fails
    /// An evaluation error.
    case error
    /// The field is absent from a partial image.
    case unknown
}

/// The verdict of a program.
enum Verdict {
    case fires
    case doesNotFire
    case error
}

/// Runs programs on a decoded change, without recursion and without allocation.
struct ProgramRunner {
    let change: DecodedChange

    /// Runs the program whose rows begin at `rows` and whose constants begin at `constants`.
    @inline(__always)
    func run(
        _ rows: UnsafePointer<UInt32>, _ constants: UnsafePointer<UInt32>,
        references: [ReferenceRow], steps: inout Int
    ) -> Verdict {
        var index = 0
        while true {
            let row = ProgramRow(rows + index * 3)
            let next: UInt16
            switch answer(row, constants, references, &steps) {
            case .holds: next = row.onTrue
            case .fails: next = row.onFalse
            case .unknown: next = row.isNegated ? row.onTrue : row.onFalse
            case .error: return .error
            }
            if next >= ProgramRow.reject {
                return next == ProgramRow.accept ? .fires : .doesNotFire
            }
            index = Int(next)
        }
    }

    @inline(__always)
    private func answer(
        _ row: ProgramRow, _ constants: UnsafePointer<UInt32>, _ references: [ReferenceRow],
        _ steps: inout Int
    ) -> RowAnswer {
        if row.test == .reference {
            return references[Int(row.constant)].answer(for: change, steps: &steps)
        }
        let slot = change.slots[Int(row.path)]
        if slot.kind == .unknown { return .unknown }
        let words = constants + Int(row.constant)
        // A step is about 2 ns; the cost of texts grows with their bytes, that of lists with their
        // elements.
        steps += row.test == .like ? 8 + Int(slot.length) * 4 : 8 + Int(slot.length)
        guard row.test == .like, slot.length >= Self.longText else {
            return judge(row, slot, words, &steps)
        }
        return judgeByTime(row, slot, words, &steps)
    }

    /// Judges a row and also counts the time that it takes, because a text that nearly matches
    /// everywhere takes longer than its length suggests.
    @inline(never)
    private func judgeByTime(
        _ row: ProgramRow, _ slot: FieldSlot, _ words: UnsafePointer<UInt32>, _ steps: inout Int
    ) -> RowAnswer {
        let began = change.threadTime()
        let answer = judge(row, slot, words, &steps)
        steps += Int((change.threadTime() &- began) / 2)
        return answer
    }

    /// The length of a text in bytes from which two readings of the clock are worth their time.
    private static var longText: UInt32 { 1 << 14 }

    /// Returns the answer of a row for a known value; the constant begins at `words`.
    @inline(__always)
    private func judge(
        _ row: ProgramRow, _ slot: FieldSlot, _ words: UnsafePointer<UInt32>, _ steps: inout Int
    ) -> RowAnswer {
        if row.isLoose { return looseAnswer(row, slot, words, &steps) }
        switch row.test {
        case .equal: return isEqual(slot, RowConstant(words)) ? .holds : .fails
        case .notEqual: return isEqual(slot, RowConstant(words)) ? .fails : .holds
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            return ordered(row.test, slot, RowConstant(words))
        case .member: return isMember(slot, words) ? .holds : .fails
        case .begins, .ends: return text(row.test, slot, RowConstant(words))
        case .has: return has(slot, RowConstant(words))
        case .anyEqual: return anyEqual(slot, RowConstant(words))
        case .like: return like(slot, RowConstant(words))
        case .reference: return .error
        }
    }

    @inline(__always)
    func isEqual(_ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        guard slot.kind == constant.kind else { return false }
        switch slot.kind {
        case .number, .date: return slot.order == constant.order && slot.tail == constant.tail
        case .collection, .unknown, .notANumber: return false
        default:
            return slot.length == constant.length
                && memcmp(change.start(of: slot), constant.bytes, Int(slot.length)) == 0
        }
    }

    @inline(__always)
    func ordered(
        _ test: RowTest, _ slot: FieldSlot, _ constant: RowConstant
    ) -> RowAnswer {
        if slot.kind == .null { return .fails }
        let isNumeric = constant.kind == .number
        if slot.kind == .notANumber, isNumeric { return .fails }
        guard slot.kind == constant.kind else { return .error }
        let difference: Int
        switch slot.kind {
        case .number, .date:
            difference =
                slot.order == constant.order
                ? Int(slot.tail) - Int(constant.tail) : (slot.order < constant.order ? -1 : 1)
        case .string: difference = compareTexts(slot, constant)
        default: return .error
        }
        let holds =
            switch test {
            case .less: difference < 0
            case .lessOrEqual: difference <= 0
            case .greater: difference > 0
            default: difference >= 0
            }
        return holds ? .holds : .fails
    }

    private func compareTexts(_ slot: FieldSlot, _ constant: RowConstant) -> Int {
        let common = Int(min(slot.length, constant.length))
        let order = memcmp(change.start(of: slot), constant.bytes, common)
        return order != 0 ? Int(order) : Int(slot.length) - Int(constant.length)
    }

    private func isMember(_ slot: FieldSlot, _ words: UnsafePointer<UInt32>) -> Bool {
        let members = RowMembers(words)
        if members.hasTable {
            guard slot.kind.isScalar else { return false }
            return members.contains(RowConstant(slot, bytes: change.start(of: slot)))
        }
        var place = members.first
        for _ in 0..<members.count {
            let constant = RowConstant(place)
            if isEqual(slot, constant) { return true }
            place += constant.words
        }
        return false
    }

    private func text(_ test: RowTest, _ slot: FieldSlot, _ constant: RowConstant) -> RowAnswer {
        if slot.kind == .null { return .fails }
        guard slot.kind == .string else { return .error }
        guard constant.length > 0, slot.length >= constant.length else { return .fails }
        let skipped = test == .begins ? 0 : Int(slot.length - constant.length)
        let holds =
            memcmp(change.start(of: slot) + skipped, constant.bytes, Int(constant.length)) == 0
        return holds ? .holds : .fails
    }

    private func has(_ slot: FieldSlot, _ constant: RowConstant) -> RowAnswer {
        switch slot.kind {
        case .null: return .fails
        case .string:
            guard constant.kind == .string else { return .error }
            guard constant.length > 0 else { return .fails }
            return contains(slot, constant) ? .holds : .fails
        case .collection: return hasElement(slot, constant) ? .holds : .fails
        default: return .error
        }
    }

    func contains(_ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        BytesSearch.isFound(
            constant.bytes, Int(constant.length), in: change.start(of: slot), Int(slot.length))
    }

    /// Matches a text against a pattern, with backtracking to the last `*` only.
    ///
    /// The time is proportional to the text, because patterns in rows are short.
    func like(_ slot: FieldSlot, _ constant: RowConstant) -> RowAnswer {
        if slot.kind == .null { return .fails }
        guard slot.kind == .string else { return .error }
        let text = change.start(of: slot)
        let (length, count) = (Int(slot.length), Int(constant.length))
        var (place, index) = (0, 0)
        var (retry, star) = (0, -1)
        while place < length {
            let wanted = index < count ? constant.bytes[index] : 0
            if index < count, wanted == PatternText.many {
                (star, retry) = (index, place)
                index += 1
            } else if index < count, wanted == PatternText.one {
                place = after(place, text, length)
                index += 1
            } else if index < count, wanted == text[place] {
                place += 1
                index += 1
            } else if star >= 0 {
                retry = after(retry, text, length)
                (place, index) = (retry, star + 1)
            } else {
                return .fails
            }
        }
        while index < count, constant.bytes[index] == PatternText.many { index += 1 }
        return index == count ? .holds : .fails
    }

    /// Returns the start of the next character.
    @inline(__always)
    private func after(_ place: Int, _ text: UnsafePointer<UInt8>, _ length: Int) -> Int {
        var next = place + 1
        while next < length, text[next] & 0xC0 == 0x80 { next += 1 }
        return next
    }

    private func anyEqual(_ slot: FieldSlot, _ constant: RowConstant) -> RowAnswer {
        switch slot.kind {
        case .null: .fails
        case .collection: hasElement(slot, constant) ? .holds : .fails
        default: .error
        }
    }

    private func hasElement(_ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        for index in 0..<Int(slot.length)
        where isEqual(change.encoder.elements[Int(slot.offset) + index], constant) {
            return true
        }
        return false
    }
}
