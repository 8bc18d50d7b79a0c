#if canImport(Glibc)
    import Glibc
#endif

// Rows under the rules of the other dialects: any scalar in a value's bag may satisfy them, and
// values of kinds that cannot be compared do not match.
extension ProgramRunner {
    /// Returns the answer of a loose row for a known value.
    func looseAnswer(
        _ row: ProgramRow, _ slot: FieldSlot, _ words: UnsafePointer<UInt32>, _ steps: inout Int
    ) -> RowAnswer {
        switch row.test {
        case .member: return isLooseMember(slot, words) ? .holds : .fails
        case .notEqual: return isLooselyUnequal(slot, RowConstant(words)) ? .holds : .fails
        case .anyEqual where slot.kind == .null: return .fails
        case .anyEqual where slot.kind != .collection: return .error
        case .reference: return .error
        default: break
        }
        let constant = RowConstant(words)
        guard slot.kind == .collection else {
            return holds(row.test, slot, constant) ? .holds : .fails
        }
        // A comparison with nil does not look inside a dictionary.
        if constant.kind == .null, slot.form.contains(.map) { return .fails }
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            if element.form.contains(.link) { continue }
            if constant.kind == .null, element.form.contains(.inner) { continue }
            steps += 8 + Int(element.length)
            if holds(row.test, element, constant) { return .holds }
        }
        return .fails
    }

    /// Returns whether one scalar satisfies a test.
    @inline(__always)
    private func holds(_ test: RowTest, _ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        switch test {
        case .equal, .anyEqual: return isLooselyEqual(slot, constant)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard slot.kind == constant.kind, case .holds = ordered(test, slot, constant) else {
                return false
            }
            return true
        case .begins, .ends, .has, .like: return holdsForText(test, slot, constant)
        case .notEqual, .member, .reference: return false
        }
    }

    /// Returns whether a scalar equals a constant.
    ///
    /// Data equals a text with the same bytes, and constants of both kinds are encoded as texts.
    @inline(__always)
    private func isLooselyEqual(_ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        guard slot.kind == .bytes, constant.kind == .string else { return isEqual(slot, constant) }
        return slot.length == constant.length
            && memcmp(change.start(of: slot), constant.bytes, Int(slot.length)) == 0
    }

    /// Judges a test on texts; the empty text is a part of every text.
    private func holdsForText(
        _ test: RowTest, _ slot: FieldSlot, _ constant: RowConstant
    ) -> Bool {
        guard slot.kind == .string || slot.kind == .bytes else { return false }
        let text = slot.searched
        if test == .like {
            guard case .holds = like(text, constant) else { return false }
            return true
        }
        let length = Int(constant.length)
        guard length > 0 else { return true }
        guard Int(text.length) >= length else { return false }
        let start = change.start(of: text)
        switch test {
        case .begins: return memcmp(start, constant.bytes, length) == 0
        case .ends:
            return memcmp(start + Int(text.length) - length, constant.bytes, length) == 0
        default: return contains(text, constant)
        }
    }

    /// Returns whether any scalar differs, which is enough; a dictionary differs from nil as a
    /// whole.
    private func isLooselyUnequal(_ slot: FieldSlot, _ constant: RowConstant) -> Bool {
        guard slot.kind == .collection else { return !isLooselyEqual(slot, constant) }
        if constant.kind == .null, !slot.form.isDisjoint(with: [.map, .holdsMaps]) { return true }
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            if element.form.contains(.link) { continue }
            if !isLooselyEqual(element, constant) { return true }
        }
        return false
    }

    /// Judges IN; for a list, it compares the two lists element by element, in order.
    private func isLooseMember(_ slot: FieldSlot, _ words: UnsafePointer<UInt32>) -> Bool {
        let members = RowMembers(words)
        let isList = slot.kind == .collection
        if isList {
            let isPlain = slot.form.isDisjoint(with: [.map, .holdsMaps])
            guard isPlain, members.count > 0, Int(slot.length) == members.count else {
                return false
            }
        } else if members.hasTable {
            guard slot.kind.isScalar else { return false }
            // Data equals a text with the same bytes, and constants of both kinds are encoded as
            // texts.
            var wanted = slot
            if wanted.kind == .bytes { wanted.kind = .string }
            return members.contains(RowConstant(wanted, bytes: change.start(of: slot)))
        }
        var place = members.first
        for index in 0..<members.count {
            let constant = RowConstant(place)
            if !isList, isLooselyEqual(slot, constant) { return true }
            if isList {
                let element = change.encoder.elements[Int(slot.offset) + index]
                guard isLooselyEqual(element, constant) else { return false }
            }
            place += constant.words
        }
        return isList
    }
}
