import RelayModel

/// A pattern of `*` and `?`, matched by following all places in it at once, 64 to a word.
struct LikePattern: Sendable {
    /// What a backslash makes plain.
    enum Escaping {
        /// Whatever follows; the backslash is gone (Realm).
        case anything
        /// `*`, `?` and `\`; before anything else it stands for itself (NSPredicate).
        case signs
    }

    /// How many code points the pattern asks for.
    private let count: Int
    /// Places at which the next code point may be any: a bit is a place.
    private let anyPlaces: [UInt64]
    /// Places at which the next code point may be this one.
    private let places: [UInt32: [UInt64]]
    /// Which of ``masks`` is that of a character of ASCII, where a look-up in ``places`` would cost
    /// more than the rest; for patterns of one word.
    private let asciiMasks: [UInt8]
    /// The word of the characters that the pattern does not have, and those of the ones it has.
    private let masks: [UInt64]
    /// Places that a `*` lets stay while the text goes on.
    private let waitingPlaces: [UInt64]

    /// Reads a pattern.
    init(_ units: [UInt32], escaping: Escaping = .anything) {
        let words = units.count / 64 + 1
        var anyPlaces = [UInt64](repeating: 0, count: words)
        var waitingPlaces = anyPlaces
        var exact: [UInt32: [Int]] = [:]
        var place = 0
        for (unit, isPlain) in Self.read(units, escaping) {
            switch unit {
            case 0x2A where !isPlain: waitingPlaces[place / 64] |= 1 << UInt64(place % 64)
            case 0x3F where !isPlain:
                anyPlaces[place / 64] |= 1 << UInt64(place % 64)
                place += 1
            default:
                exact[unit, default: []].append(place)
                place += 1
            }
        }
        count = place
        self.anyPlaces = anyPlaces
        self.waitingPlaces = waitingPlaces
        let places = exact.mapValues { found in
            var bits = anyPlaces
            for place in found { bits[place / 64] |= 1 << UInt64(place % 64) }
            return bits
        }
        self.places = places
        var asciiMasks: [UInt8] = []
        var masks: [UInt64] = []
        if words == 1 {
            asciiMasks = [UInt8](repeating: 0, count: 128)
            masks = [anyPlaces[0]]
            for (unit, bits) in places where unit < 128 {
                asciiMasks[Int(unit)] = UInt8(masks.count)
                masks.append(bits[0])
            }
        }
        self.asciiMasks = asciiMasks
        self.masks = masks
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
        if waitingPlaces.count == 1 { return matchesInOneWord(text) }
        var reached = [UInt64](repeating: 0, count: waitingPlaces.count)
        reached[0] = 1
        for unit in text {
            let fitting = places[unit] ?? anyPlaces
            var carry: UInt64 = 0
            var isAlive: UInt64 = 0
            for word in reached.indices {
                let moved = reached[word] & fitting[word]
                reached[word] = moved << 1 | carry | reached[word] & waitingPlaces[word]
                carry = moved >> 63
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
            let fitting =
                unit < 128
                ? masks[Int(asciiMasks[Int(unit)])] : (places[unit] ?? anyPlaces)[0]
            reached = (reached & fitting) << 1 | reached & waiting
            if reached == 0 { return false }
        }
        return reached >> UInt64(count) & 1 == 1
    }
}
