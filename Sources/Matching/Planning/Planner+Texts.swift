import PredicateLanguage
import RelayModel

// Keys for parts of texts, and for locations.
extension Planner {
    /// Adds the key of a text that contains another: its rarest three bytes, or only that it is a
    /// text.
    ///
    /// The key does not prove the comparison.
    func addPart(
        _ path: Int, _ slot: FieldSlot, isLoose: Bool, _ catalog: inout Catalog
    ) {
        // No text contains the empty text, but under other dialects' rules every text does.
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

    /// The maximum number of triples of a text that are considered.
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
    /// They do not prove the comparison.
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
    /// The maximum number of prefix lengths that are looked up.
    static let mostPrefixLengths = 16

    /// Returns how many bytes of a prefix make a key: all of them while few lengths are in use,
    /// otherwise the longest length in use that fits; `nil` if none does.
    func prefixLength(for wanted: Int) -> Int? {
        let bit: UInt64 = 1 << UInt64(wanted)
        if prefixLengths & bit != 0 || prefixLengths.nonzeroBitCount < Self.mostPrefixLengths {
            return wanted
        }
        let shorter = prefixLengths & (bit - 1)
        return shorter == 0 ? nil : 63 - shorter.leadingZeroBitCount
    }
}
