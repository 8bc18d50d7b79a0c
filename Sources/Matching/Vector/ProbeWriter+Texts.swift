import PredicateLanguage
import RelayModel

// Look-ups for parts of texts, and for locations.
extension ProbeWriter {
    /// Adds the grams of a text that are in use.
    func grams(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        guard slot.length >= 3 else { return }
        for index in 0..<Int(slot.length) - 2 {
            let gram = TextGram.gram(change.start(of: slot) + index)
            guard use.grams.contains(gram) else { continue }
            var part = slot
            part.offset += UInt32(index)
            part.length = 3
            scalar(use.gram, part, compartment, change)
            change.dropRepetition()
        }
    }

    // MARK: Words

    /// Adds the words of a text that are in use.
    func words(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        let tokens = use.tokens
        change.encoder.forEachWord(in: slot) { encoder, word in
            guard tokens.contains(TextWords.hash(encoder.bytes.base, word)) else { return false }
            change.words.append(word)
            return true
        }
        addWords(use, compartment, change)
    }

    /// Adds the words of the texts in a list.
    func elementWords(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        var hasInner = false
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            if element.kind == .string { words(use, element, compartment, change) }
            hasInner = hasInner || element.kind == .notANumber
        }
        // Texts in nested lists have no slots.
        if hasInner { words(of: value(use.origin, use.field, change), use, compartment, change) }
    }

    private func value(
        _ origin: PathOrigin, _ field: String, _ change: DecodedChange
    ) -> FieldValue {
        switch origin {
        case .field: change.fields[field] ?? .null
        case .members(let names):
            change.fields[names[0], default: .null].value(at: names.dropFirst())
        case .record: .map(change.fields)
        case .folded, .viewed, .viewedMembers, .viewedSteps: .null
        }
    }

    /// Adds the words of all texts of the record, which must be known completely.
    func recordWords(
        _ use: borrowing PathUse, _ compartment: UInt32, _ change: DecodedChange
    ) {
        guard case .record = use.origin, !change.isPartial else { return }
        // A column with the name of a system field is not one of the record's own fields.
        for (name, value) in change.fields where SystemField(named: name) == nil {
            words(of: value, use, compartment, change)
        }
    }

    private func words(
        of value: FieldValue, _ use: borrowing PathUse, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        switch value {
        case .string(let text):
            let slot = change.encoder.string(text)
            words(use, slot, compartment, change)
        case .list(let values):
            for value in values { words(of: value, use, compartment, change) }
        case .set(let values):
            for value in values { words(of: value, use, compartment, change) }
        case .map(let members):
            for value in members.values { words(of: value, use, compartment, change) }
        default: return
        }
    }

    private func addWords(
        _ use: borrowing PathUse, _ compartment: UInt32, _ change: DecodedChange
    ) {
        for index in 0..<change.words.count {
            scalar(use.token, change.words[index], compartment, change)
            change.dropRepetition()
        }
        change.words.count = 0
    }

    // MARK: Places

    /// Adds the cells of a location.
    ///
    /// If it is one of many, keys that were added before are left out.
    func places(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange, isRepeated: Bool = false
    ) {
        let start = UnsafeRawPointer(change.start(of: slot))
        let latitude = Double(bitPattern: start.loadUnaligned(as: UInt64.self))
        let longitude = Double(
            bitPattern: start.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        var levels = use.placeLevels
        while levels != 0 {
            let level = levels.trailingZeroBitCount
            levels &= levels - 1
            let cell = PlaceCells.cell(latitude, longitude, level: level)
            let start = begin(compartment, change)
            PlaceCells.append(cell, level: level, to: &change.encoder.bytes)
            add(use.place, from: start, change)
            if isRepeated { change.dropRepetition() }
        }
    }
}
