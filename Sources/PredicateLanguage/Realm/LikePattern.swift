/// A pattern of `*` and `?`, matched by following all places in it at once, 64 to a word.
struct LikePattern {
    /// How many code points the pattern asks for.
    private let count: Int
    /// Places at which the next code point may be any: a bit is a place.
    private let anyPlaces: [UInt64]
    /// Places at which the next code point may be this one.
    private let places: [UInt32: [UInt64]]
    /// Places that a `*` lets stay while the text goes on.
    private let waitingPlaces: [UInt64]

    /// Reads a pattern; `\` makes the next character plain.
    init(_ units: [UInt32]) {
        let words = units.count / 64 + 1
        var anyPlaces = [UInt64](repeating: 0, count: words)
        var waitingPlaces = anyPlaces
        var exact: [UInt32: [Int]] = [:]
        var place = 0
        var isEscaped = false
        for unit in units {
            switch unit {
            case 0x5C where !isEscaped:
                isEscaped = true
                continue
            case 0x2A where !isEscaped: waitingPlaces[place / 64] |= 1 << UInt64(place % 64)
            case 0x3F where !isEscaped:
                anyPlaces[place / 64] |= 1 << UInt64(place % 64)
                place += 1
            default:
                exact[unit, default: []].append(place)
                place += 1
            }
            isEscaped = false
        }
        count = place
        self.anyPlaces = anyPlaces
        self.waitingPlaces = waitingPlaces
        places = exact.mapValues { found in
            var bits = anyPlaces
            for place in found { bits[place / 64] |= 1 << UInt64(place % 64) }
            return bits
        }
    }

    /// Whether the whole text fits.
    ///
    /// - Complexity: O(*n* · *m* / 64).
    func matches(_ text: [UInt32]) -> Bool {
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
}
