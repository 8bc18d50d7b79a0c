import PredicateLanguage
import RelayModel

// Look-ups for values in the views of other dialects, by every scalar in the bag.
extension ProbeWriter {
    /// Adds the keys of a bag.
    func bag(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        var numbers = Ordered()
        var dates = Ordered()
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            let isInner = element.form.contains(.inner)
            switch element.kind {
            // A comparison with nil does not look inside dictionaries.
            case .null where isInner: continue
            case .number: numbers.add(element)
            case .date: dates.add(element)
            case .string: texts(use, element, compartment, change, isRepeated: true)
            case .bytes: data(use, element, compartment, change, isElement: true)
            case .location where use.place != 0:
                places(use, element, compartment, change, isRepeated: true)
            default: break
            }
            for dimension in [use.any[element.kind], use.element[element.kind]]
            where dimension != 0 {
                scalar(dimension, element, compartment, change)
                change.dropRepetition()
            }
        }
        if use.sequence != 0 { sequence(use.sequence, slot, compartment, change) }
        intervals(use, .number, numbers, compartment, change)
        intervals(use, .date, dates, compartment, change)
    }

    /// Adds the key of a whole list.
    private func sequence(
        _ dimension: UInt32, _ slot: FieldSlot, _ compartment: UInt32, _ change: DecodedChange
    ) {
        guard slot.length > 0, slot.form.isDisjoint(with: [.map, .holdsMaps]) else { return }
        let start = change.encoder.bytes.count
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            // An element of this kind equals nothing, so the list equals no constant.
            if element.kind == .notANumber { return }
            change.encoder.append(member: element)
        }
        scalar(dimension, change.encoder.string(from: start), compartment, change)
    }

    /// The values in a bag that can be compared by order.
    private struct Ordered {
        var count = 0
        var last = FieldSlot(.null)

        mutating func add(_ slot: FieldSlot) {
            count += 1
            last = slot
        }
    }

    /// Adds the keys of intervals.
    ///
    /// A single value is in cells. Of several values, two together may satisfy the bounds of an
    /// interval that contains neither.
    private func intervals(
        _ use: borrowing PathUse, _ kind: ValueClass, _ found: Ordered, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        if found.count == 0 { return }
        if found.count == 1 { return cells(use, found.last, compartment, change) }
        for dimension in [use.open[kind], use.hull[kind]] where dimension != 0 {
            add(dimension, from: begin(compartment, change), change)
        }
    }

    /// Adds the keys of data, which equals the text of its bytes but is searched as another text.
    func data(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange, isElement: Bool
    ) {
        let whole = isElement ? use.element[.string] : use.equal[.string]
        for dimension in [use.any[.string], whole] where dimension != 0 {
            scalar(dimension, slot, compartment, change)
            if isElement { change.dropRepetition() }
        }
        texts(use, slot.searched, compartment, change, isRepeated: isElement)
    }
}
