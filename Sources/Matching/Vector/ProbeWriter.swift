import RelayModel

/// Writes the keys of a decoded change.
struct ProbeWriter {
    let catalog: Catalog
    let seed: UInt64

    /// Adds the keys for look-ups in a plan; compartment 0 is the most common one.
    func write(plan number: Int, compartment: UInt32, to change: DecodedChange) {
        let isCompartmented = compartment != 0
        let every =
            isCompartmented
            ? catalog.plans[number].compartmentEvery : catalog.plans[number].every
        if every != 0 {
            let start = begin(compartment, change)
            add(every, from: start, change)
        }
        let uses =
            isCompartmented
            ? catalog.plans[number].compartmentPaths : catalog.plans[number].paths
        // The paths are passed by address, because a copy of a `PathUse` is large.
        uses.withUnsafeBufferPointer { uses in
            for path in 0..<uses.count {
                write(uses.baseAddress.unsafelyUnwrapped + path, path, compartment, change)
            }
        }
    }

    @inline(__always)
    private func write(
        _ use: UnsafePointer<PathUse>, _ path: Int, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        let slot = change.slots[path]
        switch slot.kind {
        case .unknown:
            if use.pointee.token != 0 { recordWords(use.pointee, compartment, change) }
        case .notANumber: return
        case .collection:
            slot.form.contains(.bag)
                ? bag(use.pointee, slot, compartment, change)
                : elements(use.pointee, slot, compartment, change)
        default:
            let dimension = use.pointee.equal[slot.kind]
            if dimension != 0 { scalar(dimension, slot, compartment, change) }
            let any = use.pointee.any[slot.kind]
            if any != 0 { scalar(any, slot, compartment, change) }
            switch slot.kind {
            case .string: texts(use.pointee, slot, compartment, change)
            case .bytes where use.pointee.origin.isView:
                data(use.pointee, slot, compartment, change, isElement: false)
            case .number, .date: cells(use.pointee, slot, compartment, change)
            case .location:
                if use.pointee.place != 0 { places(use.pointee, slot, compartment, change) }
            default: return
            }
        }
    }

    private func elements(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            let dimension = use.element[element.kind]
            if dimension == 0 { continue }
            scalar(dimension, element, compartment, change)
            if slot.length > 8 { change.dropRepetition() }
        }
        if use.token != 0 { elementWords(use, slot, compartment, change) }
    }

    /// Adds the keys of a text.
    ///
    /// If it is one of many, keys that were added before are left out.
    func texts(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange, isRepeated: Bool = false
    ) {
        if use.text != 0 {
            add(use.text, from: begin(compartment, change), change)
            if isRepeated { change.dropRepetition() }
        }
        if use.gram != 0 { grams(use, slot, compartment, change) }
        if use.token != 0 { words(use, slot, compartment, change) }
        var lengths = use.prefixLengths
        while lengths != 0 {
            let length = lengths.trailingZeroBitCount
            lengths &= lengths - 1
            if length > slot.length { return }
            var part = slot
            part.length = UInt32(length)
            scalar(use.prefix, part, compartment, change)
            if isRepeated { change.dropRepetition() }
        }
    }

    func cells(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        if use.open[slot.kind] != 0 {
            add(use.open[slot.kind], from: begin(compartment, change), change)
        }
        if use.cell[slot.kind] == 0 { return }
        if slot.kind == .date {
            cells(.dates, use, slot, compartment, change)
        } else {
            cells(.even, use, slot, compartment, change)
            cells(.logarithmic, use, slot, compartment, change)
        }
    }

    @inline(__always)
    private func cells(
        _ line: CellLine, _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        var levels = use.levels[line]
        guard levels != 0, let place = line.place(slot.order) else { return }
        while levels != 0 {
            let level = levels.trailingZeroBitCount
            levels &= levels - 1
            let code = CellLevel(line: line, level: level).code
            let own = place >> Int64(level)
            // Intervals that begin in the cell before may reach into this one.
            for cell in own - 1...own {
                let start = begin(compartment, change)
                change.encoder.append(UInt64(bitPattern: cell))
                change.encoder.bytes.append(code)
                add(use.cell[slot.kind], from: start, change)
            }
        }
    }

    /// Adds the key of a value whose canonical bytes are encoded already.
    @inline(__always)
    func scalar(
        _ dimension: UInt32, _ slot: FieldSlot, _ compartment: UInt32, _ change: DecodedChange
    ) {
        if compartment == 0, slot.length <= KeyBytes.longest {
            let hash = KeyHash.hash(
                change.start(of: slot), Int(slot.length),
                seed: KeyBytes.seed(seed, dimension - 1))
            change.probes.append(
                Probe(
                    hash: hash, dimension: dimension - 1, offset: slot.offset,
                    length: slot.length))
            return
        }
        let start = begin(compartment, change)
        KeyBytes.append(slot, from: change.encoder.bytes.base, to: &change.encoder.bytes)
        add(dimension, from: start, change)
    }

    @inline(__always)
    func begin(_ compartment: UInt32, _ change: DecodedChange) -> Int {
        let start = change.encoder.bytes.count
        if compartment != 0 { KeyBytes.append(compartment, to: &change.encoder.bytes) }
        return start
    }

    @inline(__always)
    func add(_ dimension: UInt32, from start: Int, _ change: DecodedChange) {
        let length = change.encoder.bytes.count - start
        let hash = KeyHash.hash(
            change.encoder.bytes.base + start, length, seed: KeyBytes.seed(seed, dimension - 1))
        change.probes.append(
            Probe(
                hash: hash, dimension: dimension - 1, offset: UInt32(start),
                length: UInt32(length)))
    }
}
