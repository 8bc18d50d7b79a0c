import RelayModel

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

    /// Whether `needle` is a part of this.
    ///
    /// - Complexity: O(*n* + *m*), whatever the two are (Knuth, Morris and Pratt).
    func contains(_ needle: RealmText) -> Bool {
        let wanted = needle.units
        guard !wanted.isEmpty else { return true }
        guard units.count >= wanted.count else { return false }
        let borders = wanted.borders
        var matched = 0
        for unit in units {
            while matched > 0, wanted[matched] != unit { matched = borders[matched - 1] }
            if wanted[matched] == unit { matched += 1 }
            if matched == wanted.count { return true }
        }
        return false
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
