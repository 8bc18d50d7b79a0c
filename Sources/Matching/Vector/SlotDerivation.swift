import PredicateLanguage
import RelayModel

/// Fills the slots of derived paths, after those of the fields.
struct SlotDerivation {
    let plan: RecordTypePlan

    func derive(_ change: DecodedChange) {
        if plan.needsValues, !walk(change) { return }
        for path in plan.derived {
            switch plan.paths[path].origin {
            case .field, .members, .viewedMembers, .viewedSteps: continue
            // No row compares anything with the whole record.
            case .record: change.slots[path] = FieldSlot(.unknown)
            case .viewed(let base, let view): viewed(base, view, path, change)
            case .folded(let base, let options):
                change.slots[path] = change.encoder.folded(change.slots[base], options)
            }
        }
    }

    /// Fills the slots of values inside members, and returns whether the limit on steps allowed all
    /// of them.
    ///
    /// Each path may lead through a list, and clients may use a thousand members of its elements,
    /// so the cost is the product of the saved paths and the record's contents.
    private func walk(_ change: DecodedChange) -> Bool {
        var began: UInt64 = 0
        if plan.derived.count >= Self.pathsPerLook {
            // A change that is still text is read before the clock starts, because the cost belongs
            // to no single path.
            _ = change.fields
            began = change.threadTime()
        }
        var walked = 0
        for path in plan.derived {
            switch plan.paths[path].origin {
            case .members(let names): members(names, path, change)
            case .viewedMembers(let names, let view): viewedMembers(names, view, path, change)
            case .viewedSteps(let steps, let view): viewedSteps(steps, view, path, change)
            case .field, .folded, .record, .viewed: continue
            }
            walked += 1
            guard walked % Self.pathsPerLook == 0 else { continue }
            // A step is about 2 ns.
            change.walkedSteps = Int((change.threadTime() &- began) / 2)
            if change.isCutShort { return false }
        }
        return true
    }

    /// The number of paths between two readings of the clock, since one reading takes about as long
    /// as one path.
    private static let pathsPerLook = 8

    private func members(_ names: [String], _ path: Int, _ change: DecodedChange) {
        guard let first = names.first, let value = value(of: first, path, change) else { return }
        change.slots[path] = change.encoder.encode(value.value(at: names.dropFirst()))
    }

    private func viewed(
        _ base: Int, _ view: ValueView, _ path: Int, _ change: DecodedChange
    ) {
        let slot = change.slots[base]
        if let viewed = change.encoder.viewed(slot, in: view) {
            change.slots[path] = viewed
        } else if let value = value(of: plan.paths[base].field, path, change) {
            change.slots[path] = change.encoder.encode(value, in: view)
        }
    }

    private func viewedMembers(
        _ names: [String], _ view: ValueView, _ path: Int, _ change: DecodedChange
    ) {
        guard let first = names.first, let value = value(of: first, path, change) else { return }
        let record = FieldValue.map([first: value])
        let found =
            view == .minapp ? record.minappValue(at: names) : record.realmValue(at: names)
        change.slots[path] = change.encoder.encode(found, in: view)
    }

    private func viewedSteps(
        _ steps: [RealmStep], _ view: ValueView, _ path: Int, _ change: DecodedChange
    ) {
        guard case .member(let first)? = steps.first, let value = value(of: first, path, change)
        else { return }
        let found = FieldValue.map([first: value]).realmValue(at: steps)
        change.slots[path] = change.encoder.encode(found, in: view)
    }

    /// Returns the value of a field.
    ///
    /// For a system field without a known value, it sets the path to unknown.
    private func value(
        of field: String, _ path: Int, _ change: DecodedChange
    ) -> FieldValue? {
        guard SystemField(named: field) != nil else { return change.fields[field] }
        let value = change.judgedFields?[field]
        if value == nil { change.slots[path] = FieldSlot(.unknown) }
        return value
    }
}

extension ValueEncoder {
    /// Returns the slot of a value with its texts folded.
    mutating func folded(_ slot: FieldSlot, _ options: TextOptions) -> FieldSlot {
        switch slot.kind {
        case .string: return foldedText(slot, options)
        case .collection:
            var copy = slot
            elements.reserve(Int(slot.length))
            copy.offset = UInt32(elements.count)
            for index in 0..<Int(slot.length) {
                let element = elements[Int(slot.offset) + index]
                let folded = element.kind == .string ? foldedText(element, options) : element
                elements.append(folded)
            }
            return copy
        default: return slot
        }
    }

    private mutating func foldedText(_ slot: FieldSlot, _ options: TextOptions) -> FieldSlot {
        let length = Int(slot.length)
        bytes.reserve(length)
        let start = bytes.count
        let source = bytes.base + Int(slot.offset)
        let target = bytes.base + start
        var union: UInt8 = 0
        let ignoresCase = options.contains(.ignoringCase)
        for index in 0..<length {
            union |= source[index]
            target[index] = ignoresCase ? TextWords.lowercase(source[index]) : source[index]
        }
        if union < 0x80 {
            bytes.count += length
        } else {
            let text = String(
                decoding: UnsafeBufferPointer(start: source, count: length), as: UTF8.self)
            guard let folded = folded(text, options) else { return FieldSlot(.unknown) }
            append(folded.utf8)
        }
        return string(from: start)
    }
}
