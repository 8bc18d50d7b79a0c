import RelayModel

extension RealmEvaluator {
    /// What a comparison asks of two single values.
    struct Test {
        let comparator: RecordPredicate.Comparator
        private let ignoresCase: Bool
        private let comparesTypes: Bool

        init(_ comparison: Comparison) {
            comparator = comparison.comparator == .in ? .equal : comparison.comparator
            ignoresCase = comparison.options.contains(.ignoringCase)
            comparesTypes = comparison.left.namesType || comparison.right.namesType
        }

        func holds(_ left: FieldValue, _ right: FieldValue) -> Bool {
            if comparesTypes {
                return RealmTypeName.areAlike(left, right) == (comparator == .equal)
            }
            switch comparator {
            case .equal where ignoresCase: return isEqualIgnoringCase(left, right)
            case .notEqual where ignoresCase: return !isEqualIgnoringCase(left, right)
            case .beginsWith, .endsWith, .contains, .like, .tokenMatches:
                return holdsForTexts(left, right)
            default: return RealmOrder.holds(comparator, left, right)
            }
        }

        private func isEqualIgnoringCase(_ left: FieldValue, _ right: FieldValue) -> Bool {
            guard left.hasByteCount, right.hasByteCount else {
                return RealmOrder.isEqual(left, right)
            }
            return RealmText(left, .ignoringCase) == RealmText(right, .ignoringCase)
        }

        /// A nil needle is found everywhere, in nil too; only nil is LIKE nil.
        private func holdsForTexts(_ text: FieldValue, _ needle: FieldValue) -> Bool {
            if needle.isNull { return comparator == .like ? text.isNull : true }
            guard text.hasByteCount, needle.hasByteCount else { return false }
            let options: RecordPredicate.TextOptions = ignoresCase ? .ignoringCase : []
            let text = RealmText(text, options)
            let needle = RealmText(needle, options)
            switch comparator {
            case .beginsWith: return text.units.starts(with: needle.units)
            case .endsWith: return text.units.reversed().starts(with: needle.units.reversed())
            case .contains: return text.contains(needle)
            case .like: return text.isLike(needle)
            default: return text.hasWords(of: needle)
            }
        }
    }
}

extension RecordPredicate.Expression {
    /// Whether this is a path that ends in `@type`.
    var namesType: Bool {
        switch self {
        case .path(let path), .member(_, let path): path.components.last == .collection(.type)
        default: false
        }
    }
}

/// A text or data as Realm compares it: as code points, or as bytes.
struct RealmText: Equatable {
    /// The code points of a text, folded one by one if case is ignored; the bytes of data.
    let units: [UInt32]

    init(_ value: FieldValue, _ options: RecordPredicate.TextOptions) {
        let ignoresCase = options.contains(.ignoringCase)
        switch value {
        case .string(let text):
            units = text.unicodeScalars.map { ignoresCase ? Self.folded($0) : $0.value }
        case .bytes(let bytes):
            units = bytes.map { byte in
                let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                return UInt32(ignoresCase && isUpper ? byte | 0x20 : byte)
            }
        default: units = []
        }
    }

    /// The one code point that a code point folds to; those that fold to several stay.
    private static func folded(_ scalar: Unicode.Scalar) -> UInt32 {
        if scalar.isASCII {
            let isUpper = (0x41...0x5A).contains(scalar.value)
            return isUpper ? scalar.value | 0x20 : scalar.value
        }
        let mapped = scalar.properties.lowercaseMapping.unicodeScalars
        return mapped.count == 1 ? mapped.first?.value ?? scalar.value : scalar.value
    }

    func contains(_ needle: RealmText) -> Bool {
        guard let first = needle.units.first else { return true }
        guard units.count >= needle.units.count else { return false }
        for start in 0...(units.count - needle.units.count)
        where units[start] == first && units[start...].starts(with: needle.units) {
            return true
        }
        return false
    }

    /// Whether the whole text fits a pattern: `?` is one code point, `*` any run, `\` makes the
    /// next one plain.
    ///
    /// - Complexity: O(*n* · *m*); the last `*` alone is tried again.
    func isLike(_ pattern: RealmText) -> Bool {
        let wildcards = pattern.wildcards
        var (text, place) = (0, 0)
        var retry: (place: Int, text: Int)?
        while text < units.count {
            if place < wildcards.count, wildcards[place] == .run {
                retry = (place + 1, text)
                place += 1
            } else if place < wildcards.count, wildcards[place].fits(units[text]) {
                place += 1
                text += 1
            } else if let last = retry {
                retry = (last.place, last.text + 1)
                place = last.place
                text = last.text + 1
            } else {
                return false
            }
        }
        return wildcards[place...].allSatisfy { $0 == .run }
    }

    private enum Wildcard: Equatable {
        case one
        case run
        case exactly(UInt32)

        func fits(_ unit: UInt32) -> Bool {
            switch self {
            case .one: true
            case .run: false
            case .exactly(let wanted): wanted == unit
            }
        }
    }

    private var wildcards: [Wildcard] {
        var wildcards: [Wildcard] = []
        var isEscaped = false
        for unit in units {
            switch unit {
            case 0x5C where !isEscaped:
                isEscaped = true
                continue
            case 0x3F where !isEscaped: wildcards.append(.one)
            case 0x2A where !isEscaped: wildcards.append(.run)
            default: wildcards.append(.exactly(unit))
            }
            isEscaped = false
        }
        return wildcards
    }

    /// Realm's full-text search: every word of the needle is a word of the text, and none of those
    /// after a `-` is; a word ending in `*` is a prefix.
    func hasWords(of needle: RealmText) -> Bool {
        let words = Set(split(at: { !$0.isWord }).map { $0.map(Self.folded) })
        for term in needle.split(at: { $0.value == 0x20 }) {
            let isExcluded = term.first?.value == 0x2D
            let isPrefix = term.last?.value == 0x2A
            let word = term.filter(\.isWord).map(Self.folded)
            if word.isEmpty { continue }
            let isFound = isPrefix ? words.contains { $0.starts(with: word) } : words.contains(word)
            if isFound == isExcluded { return false }
        }
        return true
    }

    private func split(at isSeparator: (Unicode.Scalar) -> Bool) -> [[Unicode.Scalar]] {
        units.compactMap(Unicode.Scalar.init).split(whereSeparator: isSeparator).map(Array.init)
    }
}

extension Unicode.Scalar {
    /// Whether this is part of a word for a full-text search.
    var isWord: Bool {
        properties.isAlphabetic || properties.numericType != nil
    }
}
