/// A pattern with `*` and `?`.
///
/// Matching tracks all reachable places of the pattern at once, 64 in a word.
///
/// Its memory is proportional to the length of the pattern. A mask of all places for each character
/// would take quadratic memory if all characters differ, which is half a gigabyte for a condition
/// of 250 KB. So only characters with very many places have a mask.
struct LikePattern: Sendable {
    /// The characters that a backslash escapes.
    enum Escaping {
        /// Any character. The backslash is dropped (Realm).
        case anything
        /// `*`, `?` and `\`. Before any other character a backslash is a plain character
        /// (NSPredicate).
        case signs
    }

    /// A character of the pattern, with its places.
    private struct Letter: Sendable {
        let unit: UInt32
        /// The row of ``masks`` with its places, or 0.
        var row: UInt32 = 0
        /// The range of its places in ``rarePlaces``, if it has no row.
        var start: UInt32
        var end: UInt32
    }

    /// The number of places, that is, of code points that the pattern matches outside `*`.
    private let count: Int
    /// The characters of the pattern, in ascending order.
    private let letters: [Letter]
    /// The places of the characters that have no row.
    private let rarePlaces: [UInt32]
    /// Rows of bits, with one bit for each place of the pattern.
    ///
    /// The first row has the places at which any code point is allowed. Each other row has those,
    /// and the places of one frequent character.
    private let masks: [UInt64]
    /// The row of ``masks`` for each ASCII character, because a look-up would cost more than the
    /// rest of the match.
    ///
    /// It exists only for patterns of one word, in which each character has a row.
    private let asciiRows: [UInt8]
    /// The places at which a `*` lets the match stay while the text goes on.
    private let waitingPlaces: [UInt64]

    /// Creates a pattern from its code points.
    init(_ units: [UInt32], escaping: Escaping = .anything) {
        let words = units.count / 64 + 1
        var masks = [UInt64](repeating: 0, count: words)
        var waitingPlaces = masks
        // Each character with its place in the lower bits, so that sorting groups the places of a
        // character.
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

    /// The bytes of the pattern on the heap, which are the same for equal patterns.
    var room: Int {
        HeapRoom.grownArray(letters.count, MemoryLayout<Letter>.stride)
            + HeapRoom.grownArray(rarePlaces.count, 4) + HeapRoom.grownArray(masks.count, 8)
            + HeapRoom.array(asciiRows.count, 1) + HeapRoom.array(waitingPlaces.count, 8)
    }

    /// Returns the code points without escaping backslashes, each with whether it was escaped.
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

    /// Returns whether the pattern matches the whole text.
    ///
    /// - Complexity: O(*n* · *m* / 64) in the lengths of the text and the pattern.
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

    /// Returns the pattern's entry for a code point, or `nil` if the pattern does not contain it.
    private func letter(_ unit: UInt32) -> Letter? {
        var (low, high) = (0, letters.count)
        while low < high {
            let middle = (low + high) / 2
            if letters[middle].unit < unit { low = middle + 1 } else { high = middle }
        }
        return low < letters.count && letters[low].unit == unit ? letters[low] : nil
    }
}
