import PredicateLanguage
import RelayModel

// Keys for what stands somewhere in a text, and for places.
extension Planner {
    /// Adds the key of a text that has another inside: its rarest three bytes, or just that it
    /// is a text.
    ///
    /// It proves nothing.
    func addPart(
        _ path: Int, _ slot: FieldSlot, isLoose: Bool, _ catalog: inout Catalog
    ) {
        // Nothing has the empty text inside, but by other dialects' rules every text has.
        if slot.length == 0, !isLoose { return }
        guard slot.length >= 3 else {
            addKey(dimension(.text, path, .string), begin(), isExact: false, &catalog)
            return
        }
        let dimension = dimension(.gram, path, .string)
        let mark = keys.count
        var least = Double.infinity
        var best = 0
        for offset in 0..<min(Int(slot.length) - 2, Self.mostGrams) {
            addGram(dimension, Int(slot.offset) + offset, &catalog)
            guard keys.count > mark else { return }
            let expected = expected(keys[mark], isWeighed: true)
            if expected < least { (least, best) = (expected, offset) }
            keys.count = mark
        }
        let place = Int(slot.offset) + best
        addGram(dimension, place, &catalog)
        if isEstimating { return }
        catalog.useText(TextGram.gram(encoder.bytes.base + place), dimension)
    }

    /// Triples of a text that are looked at.
    private static let mostGrams = 64

    private func addGram(_ dimension: KeyDimension, _ place: Int, _ catalog: inout Catalog) {
        var start = place
        if compartment != 0 {
            start = begin()
            for index in 0..<3 { encoder.bytes.append(encoder.bytes[place + index]) }
        }
        addKey(
            dimension, start, length: compartment != 0 ? nil : 3, isExact: false, &catalog)
    }

    /// Adds the key of a word.
    func addWord(_ path: Int, _ word: String, _ catalog: inout Catalog) {
        let slot = encoder.string(word)
        let dimension = dimension(.token, path, .string)
        addValue(.token, path, slot, &catalog)
        if isEstimating { return }
        catalog.useText(TextWords.hash(encoder.bytes.base, slot), dimension)
    }

    /// Adds the keys of the cells that a circle touches.
    ///
    /// They prove nothing.
    func addPlaces(
        _ path: Int, _ centre: Location, _ metres: Double, _ catalog: inout Catalog
    ) {
        guard let cells = PlaceCells(centre, metres: metres) else { return }
        let dimension = dimension(.place, path, .location)
        for cell in cells.cells {
            let start = begin()
            PlaceCells.append(cell, level: cells.level, to: &encoder.bytes)
            addKey(dimension, start, isExact: false, &catalog)
        }
        if isEstimating { return }
        catalog.usePlace(level: cells.level, dimension)
    }
}

extension PathUse {
    /// Prefix lengths looked up at most.
    static let mostPrefixLengths = 16

    /// How much of a prefix is a key: all of it while few lengths are in use, else as much as is
    /// looked up anyway; `nil` if nothing does.
    func prefixLength(for wanted: Int) -> Int? {
        let bit: UInt64 = 1 << UInt64(wanted)
        if prefixLengths & bit != 0 || prefixLengths.nonzeroBitCount < Self.mostPrefixLengths {
            return wanted
        }
        let shorter = prefixLengths & (bit - 1)
        return shorter == 0 ? nil : 63 - shorter.leadingZeroBitCount
    }
}
