import RelayModel

/// A text or binary data as Realm compares it: as code points, or as bytes.
struct RealmText: Equatable {
    /// The code points of a text or the bytes of data, each folded on its own if case is ignored.
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

    /// Returns the code point to which a code point folds.
    ///
    /// A code point that would fold to several stays unchanged.
    private static func folded(_ scalar: Unicode.Scalar) -> UInt32 {
        if scalar.isASCII {
            let isUpper = (0x41...0x5A).contains(scalar.value)
            return isUpper ? scalar.value | 0x20 : scalar.value
        }
        let mapped = scalar.properties.lowercaseMapping.unicodeScalars
        return mapped.count == 1 ? mapped.first?.value ?? scalar.value : scalar.value
    }

    /// Returns whether `needle` is a part of this text.
    ///
    /// - Complexity: O(*n* + *m*) for all texts (Knuth, Morris and Pratt).
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

    /// Evaluates Realm's full-text search: every word of the needle is a word of the text, and no
    /// word after a `-` is.
    ///
    /// A word that ends in `*` is a prefix.
    ///
    /// Case and the diacritics of Latin letters are ignored, except for the ring of `å`. A term
    /// without letters and digits is in no text.
    func hasWords(of needle: RealmText) -> Bool {
        let words = Set(Self.words(in: units[...]))
        let terms = needle.units.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
        return !terms.isEmpty
            && terms.allSatisfy { term in
                let isExcluded = term.first == 0x2D
                let wanted = Self.words(in: term)
                guard let last = wanted.last else { return isExcluded }
                let isPrefix = term.last == 0x2A
                let hasLast =
                    isPrefix ? words.contains { $0.starts(with: last) } : words.contains(last)
                let hasAll = hasLast && wanted.dropLast().allSatisfy { words.contains($0) }
                return hasAll != isExcluded
            }
    }

    /// Returns the words among code points, in the form in which a search compares them.
    private static func words(in units: ArraySlice<UInt32>) -> [[UInt32]] {
        var words: [[UInt32]] = []
        var word: [UInt32] = []
        for unit in units {
            if let last = word.last, (0x300...0x36F).contains(unit) {
                // The letter is treated as if it were composed: Latin letters lose the mark.
                if last == 0x61, unit == 0x30A {
                    word[word.count - 1] = 0xE5
                } else if last >= 0x80 {
                    word.append(unit)
                }
            } else if let scalar = Unicode.Scalar(unit), scalar.isWord {
                word.append(searched(scalar))
            } else if !word.isEmpty {
                words.append(word)
                word = []
            }
        }
        if !word.isEmpty { words.append(word) }
        return words
    }

    private static func searched(_ scalar: Unicode.Scalar) -> UInt32 {
        let small = folded(scalar)
        return (0xE0...0xFF).contains(small) ? plainLetters[Int(small - 0xE0)] : small
    }

    /// The letters from `à` to `ÿ` without their diacritics, as Realm's index stores them.
    private static let plainLetters: [UInt32] =
        "aaaaa\u{E5}\u{E6}ceeeeiiii\u{F0}nooooo\u{F7}\u{F8}uuuuy\u{FE}y".unicodeScalars
        .map(\.value)
}

extension Unicode.Scalar {
    /// Whether this is part of a word in a full-text search.
    var isWord: Bool {
        properties.isAlphabetic || properties.numericType != nil
    }
}
