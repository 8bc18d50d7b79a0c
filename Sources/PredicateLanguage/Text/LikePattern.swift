/// A pattern of `*` and `?`, matched by following all places in it at once, 64 to a word.
///
/// It takes room in proportion to its length. A mask of all places for each character would take
/// the square of that where all characters are different, which is half a gigabyte for a condition
/// of 250 kB: only characters at very many places have one.
struct LikePattern: Sendable {
    /// What a backslash makes plain.
    enum Escaping {
        /// Whatever follows; the backslash is gone (Realm).
        case anything
        /// `*`, `?` and `\`; before anything else it stands for itself (NSPredicate).
        case signs
    }

    /// A character of the pattern, and where it stands.
    private struct Letter: Sendable {
        let unit: UInt32
        /// The row of ``masks`` with its places, or 0.
        var row: UInt32 = 0
        /// Its places among ``rarePlaces``, where it has no row.
        var start: UInt32
        var end: UInt32
    }

    /// How many code points the pattern asks for.
    private let count: Int
    /// The characters that the pattern has, ascending.
    private let letters: [Letter]
    /// The places of those that stand at few.
    private let rarePlaces: [UInt32]
    /// Rows of as many words as the pattern has, in which a bit is a place: first, at which places
    /// the next code point may be any; then, those and the places of a character at many.
    private let masks: [UInt64]
    /// Which row of ``masks`` is that of a character of ASCII, where a look-up would cost more than
    /// the rest; for patterns of one word, in which each character has a row.
    private let asciiRows: [UInt8]
    /// Places that a `*` lets stay while the text goes on.
    private let waitingPlaces: [UInt64]

    /// Reads a pattern.
    init(_ units: [UInt32], escaping: Escaping = .anything) {
        let words = units.count / 64 + 1
        var masks = [UInt64](repeating: 0, count: words)
        var waitingPlaces = masks
        // Each with its place behind it, so that in order the places of one stand together.
        var exact: [UInt64] = []
        var place = 0
        for (unit, isPlain) in Self.read(units, escaping) {
            switch unit {
            case 0x2A where !isPlain: waitingPlaces[place / 64] |= 1 << UInt64(place % 64)
            case 0x3F where !isPlain:
                masks[place / 64] |= 1 << UInt64(place % 64)
                place += 1
            default:
                exact.append(UInt64(unit) << 32 | UInt64(place))
                place += 1
            }
        }
        count = place
        self.waitingPlaces = waitingPlaces
        exact.sort()
        var letters: [Letter] = []
        var rarePlaces: [UInt32] = []
        var next = 0
        while next < exact.count {
            let unit = UInt32(exact[next] >> 32)
            let first = next
            while next < exact.count, exact[next] >> 32 == UInt64(unit) { next += 1 }
            let places = exact[first..<next].map { UInt32(truncatingIfNeeded: $0) }
            var letter = Letter(
                unit: unit, start: UInt32(rarePlaces.count), end: UInt32(rarePlaces.count))
            if words == 1 || places.count > words {
                let start = masks.count
                for word in 0..<words { masks.append(masks[word]) }
                for place in places { masks[start + Int(place / 64)] |= 1 << UInt64(place % 64) }
                letter.row = UInt32(start / words)
            } else {
                rarePlaces.append(contentsOf: places)
                letter.end = UInt32(rarePlaces.count)
            }
            letters.append(letter)
        }
        var asciiRows: [UInt8] = []
        if words == 1 {
            asciiRows = [UInt8](repeating: 0, count: 128)
            for letter in letters where letter.unit < 128 {
                asciiRows[Int(letter.unit)] = UInt8(letter.row)
            }
        }
        self.letters = letters
        self.rarePlaces = rarePlaces
        self.masks = masks
        self.asciiRows = asciiRows
    }

    /// Bytes that it takes on the heap, the same for equal patterns.
    var room: Int {
        HeapRoom.grownArray(letters.count, MemoryLayout<Letter>.stride)
            + HeapRoom.grownArray(rarePlaces.count, 4) + HeapRoom.grownArray(masks.count, 8)
            + HeapRoom.array(asciiRows.count, 1) + HeapRoom.array(waitingPlaces.count, 8)
    }

    /// The units without their backslashes, and whether each was behind one.
    private static func read(
        _ units: [UInt32], _ escaping: Escaping
    ) -> [(unit: UInt32, isPlain: Bool)] {
        let backslash: UInt32 = 0x5C
        var result: [(unit: UInt32, isPlain: Bool)] = []
        result.reserveCapacity(units.count)
        var isEscaped = false
        for unit in units {
            if unit == backslash, !isEscaped {
                isEscaped = true
                continue
            }
            if isEscaped, escaping == .signs, ![0x2A, 0x3F, backslash].contains(unit) {
                result.append((backslash, true))
            }
            result.append((unit, isEscaped))
            isEscaped = false
        }
        if isEscaped, escaping == .signs { result.append((backslash, true)) }
        return result
    }

    /// Whether the whole text fits.
    ///
    /// - Complexity: O(*n* · *m* / 64).
    func matches(_ text: some Sequence<UInt32>) -> Bool {
        let words = waitingPlaces.count
        if words == 1 { return matchesInOneWord(text) }
        var reached = [UInt64](repeating: 0, count: words)
        var moved = reached
        reached[0] = 1
        for unit in text {
            let letter = letter(unit)
            let row = Int(letter?.row ?? 0) * words
            for word in 0..<words { moved[word] = reached[word] & masks[row + word] }
            if let letter {
                for place in rarePlaces[Int(letter.start)..<Int(letter.end)] {
                    let word = Int(place / 64)
                    moved[word] |= reached[word] & 1 << UInt64(place % 64)
                }
            }
            var carry: UInt64 = 0
            var isAlive: UInt64 = 0
            for word in 0..<words {
                let stays = reached[word] & waitingPlaces[word]
                reached[word] = moved[word] << 1 | carry | stays
                carry = moved[word] >> 63
                isAlive |= reached[word]
            }
            if isAlive == 0 { return false }
        }
        return reached[count / 64] >> UInt64(count % 64) & 1 == 1
    }

    private func matchesInOneWord(_ text: some Sequence<UInt32>) -> Bool {
        let waiting = waitingPlaces[0]
        var reached: UInt64 = 1
        for unit in text {
            let row = unit < 128 ? Int(asciiRows[Int(unit)]) : Int(letter(unit)?.row ?? 0)
            reached = (reached & masks[row]) << 1 | reached & waiting
            if reached == 0 { return false }
        }
        return reached >> UInt64(count) & 1 == 1
    }

    /// The character of the pattern that a code point is.
    private func letter(_ unit: UInt32) -> Letter? {
        var (low, high) = (0, letters.count)
        while low < high {
            let middle = (low + high) / 2
            if letters[middle].unit < unit { low = middle + 1 } else { high = middle }
        }
        return low < letters.count && letters[low].unit == unit ? letters[low] : nil
    }
}
